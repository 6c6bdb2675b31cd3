// Pictures of every view for docs/screenshots: two of them at four widths, in light and dark.
// screenshots.mjs NODE_MODULES OUT PAGE.html [VIEW=OTHER.html...]

import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [modules, out, page, ...others] = process.argv.slice(2);
const { chromium } = createRequire(resolve(modules, "index.js"))("playwright-core");
const pages = Object.fromEntries(others.map((one) => one.split("=")));
const WIDTHS = { overview: [360, 800, 1440, 2560], timeline: [360, 800, 1440, 2560], flame: [1440], map: [1440], sites: [1440], compare: [1440] };

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
for (const colorScheme of ["light", "dark"])
  for (const [view, widths] of Object.entries(WIDTHS))
    for (const width of widths) {
      const tab = await (await browser.newContext({ colorScheme, viewport: { width, height: width < 500 ? 800 : 860 }, reducedMotion: "reduce" })).newPage();
      await tab.goto(`${pathToFileURL(resolve(pages[view] ?? page))}#${view}`);
      await tab.locator(`.view-${view} h1`).waitFor();
      await tab.waitForTimeout(800); // frames of flame graphs grow to their width
      await tab.screenshot({ path: join(out, `${view}-${width}-${colorScheme}.png`) });
      await tab.context().close();
    }
await browser.close();
