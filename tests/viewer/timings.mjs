// How long a page takes, as medians in milliseconds. Not a test.
// timings.mjs NODE_MODULES PAGE.html [RUNS]

import { statSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [modules, file, runs = "7"] = process.argv.slice(2);
const { chromium } = createRequire(resolve(modules, "index.js"))("playwright-core");
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
const times = {};

/* Until what was asked for has been drawn. Runs in the page. */
const FRAME = "new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(performance.now()))))";

function note(what, ms) {
  (times[what] ??= []).push(ms);
}

/* Time of the page's own work for a synchronous action. */
async function acting(page, what, action) {
  note(what, await page.evaluate(`(() => { const begin = performance.now(); (${action})(); return performance.now() - begin; })()`));
  await page.evaluate(FRAME);
}

async function once() {
  const page = await (await browser.newContext({ viewport: { width: 1440, height: 900 }, reducedMotion: "reduce" })).newPage();
  const address = pathToFileURL(resolve(file)).href;
  await page.goto(address);
  await page.locator(".view-overview .stack-chart").waitFor();
  note("open, until the overview with its chart is drawn", await page.evaluate(FRAME));
  const view = async (name) => {
    note(`go to ${name}`, await page.evaluate(`(async () => {
      const begin = performance.now();
      document.querySelector('nav a[data-view="${name}"]').click();
      while (!document.querySelector(".view-${name}")) await new Promise((done) => setTimeout(done));
      return (await ${FRAME}) - begin; })()`));
  };
  await view("timeline");
  const plot = 'document.querySelector(".view-timeline .stack-plot")';
  const pointer = (type, x, y) => `() => { const box = ${plot}.getBoundingClientRect();
    ${plot}.dispatchEvent(new PointerEvent("${type}", { clientX: box.left + box.width * ${x}, clientY: box.top + box.height * ${y}, bubbles: true, button: 0 })); }`;
  for (const x of [0.2, 0.5, 0.8]) await acting(page, "hover", pointer("pointermove", x, 0.9));
  const button = (name) => `() => [...document.querySelectorAll(".view-timeline button")].find((one) => one.textContent === "${name}").click()`;
  for (const step of ["Zoom in", "Zoom in", "Zoom in", "Zoom out", "Show all"]) await acting(page, "zoom", button(step));
  await acting(page, "pin: press", pointer("pointerdown", 0.6, 0.5));
  await acting(page, "pin a moment, with its make-up", pointer("pointerup", 0.6, 0.5));
  await acting(page, "bands by segment", `() => { const by = [...document.querySelectorAll(".view-timeline select")].find((one) => [...one.options].some((option) => option.value === "segment"));
    by.value = "segment"; by.dispatchEvent(new Event("change")); }`);
  await acting(page, "hover, by segment", pointer("pointermove", 0.4, 0.9));
  for (const name of ["flame", "map", "sites"]) await view(name);
  await page.context().close();
}

for (let i = 0; i < Number(runs); i++) await once();
await browser.close();
const median = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];
console.log(`page of ${(statSync(file).size / 1e6).toFixed(2)} MB, ${runs} runs`);
for (const [what, list] of Object.entries(times)) if (!what.startsWith("pin: ")) console.log(`${median(list).toFixed(1).padStart(8)} ms  ${what} (${Math.min(...list).toFixed(1)} to ${Math.max(...list).toFixed(1)}, n = ${list.length})`);
