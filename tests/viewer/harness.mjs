// Tests in a browser, as TAP: a page of the folder, its document, and what a reader would do.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

export const modules = process.argv[2];
const work = process.argv[3];
const { chromium } = createRequire(join(modules, "index.js"))("playwright-core");
const ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"];

const tests = [];
export const test = (name, body) => tests.push({ name, body });
export const documentOf = (name) => JSON.parse(readFileSync(join(work, `${name}.json`), "utf8"));
export const pathOf = (name) => join(work, name);
export const sum = (list, read = (value) => value) => list.reduce((total, one) => total + read(one), 0);

export function same(found, expected, what) {
  if (JSON.stringify(found) !== JSON.stringify(expected))
    throw new Error(`${what}: found ${JSON.stringify(found)?.slice(0, 600)}, expected ${JSON.stringify(expected)?.slice(0, 600)}`);
}

export function holds(condition, what) {
  if (!condition) throw new Error(what);
}

/** The exact bytes behind the sizes of a locator. */
export const bytesIn = (locator) => locator.locator("[data-bytes]").evaluateAll((list) => list.map((one) => Number(one.dataset.bytes)));

let browser;

async function newPage(options = {}) {
  const context = await browser.newContext(options);
  context.setDefaultTimeout(MOST_MS);
  const page = await context.newPage();
  page.troubles = [];
  page.on("pageerror", (error) => page.troubles.push(`threw ${error.message}`));
  opened.push(page);
  return page;
}

/** A page with nothing in it yet, closed at the test's end. */
export async function blank() {
  return newPage();
}

/** Opens a page at a view, of which the name may go on as in an address ("timeline?at=peak"); whatever it asks of a network, or throws, fails the test at its end. */
export async function open(name, view = "overview", options = {}) {
  const page = await newPage({ viewport: { width: 1280, height: 900 }, reducedMotion: "reduce", ...options });
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && page.troubles.push(`console: ${message.text()}`));
  page.on("request", (request) => /^(file|data|blob):/.test(request.url()) || page.troubles.push(`asked for ${request.url()}`));
  await page.goto(`${pathToFileURL(pathOf(`${name}.html`))}#${view}`);
  await page.locator(`.view-${view.split("?")[0]} h1`).waitFor();
  await drawn(page);
  return page;
}

/** Until the page has drawn what it was asked for. */
export const drawn = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done)))));

/** Goes to another view of an open page. */
export async function go(page, view) {
  await page.getByRole("navigation", { name: "Views" }).locator(`a[data-view="${view}"]`).click();
  await page.locator(`.view-${view} h1`).waitFor();
  await drawn(page);
}

let opened = [];

const MOST_MS = 240_000; // for one step: a machine with other work takes many times what this takes alone

async function runOne({ name, body }, number) {
  let error = null;
  try {
    await body();
    for (const page of opened) if (page.troubles.length) throw new Error(page.troubles.join("; "));
  } catch (thrown) {
    error = thrown;
  }
  await Promise.all(opened.map((page) => page.context().close()));
  opened = [];
  console.log(`${error ? "not ok" : "ok"} ${number} - ${name}`);
  if (error) for (const line of String(error.stack ?? error).split("\n").slice(0, 12)) console.log(`# ${line}`);
  return !error;
}

export async function runAll() {
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ARGUMENTS, timeout: MOST_MS });
  let failed = 0;
  for (const [i, one] of tests.entries()) if (!(await runOne(one, i + 1))) failed++;
  console.log(`1..${tests.length}`);
  await browser.close();
  process.exit(failed ? 1 : 0);
}
