// Pictures of every view for docs/screenshots: light, dark, narrow.
// screenshots.mjs NODE_MODULES OUT PAGE.html [VIEW=OTHER.html...]

import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [modules, out, page, ...others] = process.argv.slice(2);
const { chromium } = createRequire(resolve(modules, "index.js"))("playwright-core");
const pages = Object.fromEntries(others.map((one) => one.split("=")));
const LOOKS = {
  light: { colorScheme: "light", viewport: { width: 1280, height: 860 } },
  dark: { colorScheme: "dark", viewport: { width: 1280, height: 860 } },
  narrow: { colorScheme: "light", viewport: { width: 390, height: 844 } },
};

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
for (const [look, options] of Object.entries(LOOKS)) {
  const tab = await (await browser.newContext({ ...options, reducedMotion: "reduce" })).newPage();
  for (const view of ["overview", "timeline", "flame", "map", "sites", "compare"]) {
    await tab.goto(`${pathToFileURL(resolve(pages[view] ?? page))}#${view}`);
    await tab.reload();
    await tab.locator(`.view-${view} h1`).waitFor();
    await tab.waitForTimeout(800); // frames of flame graphs grow to their width
    await tab.screenshot({ path: join(out, `${view}-${look}.png`) });
  }
}
await browser.close();
