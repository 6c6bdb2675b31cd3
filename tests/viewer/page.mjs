import { readFileSync, statSync } from "node:fs";
import { documentOf, drawn, go, holds, open, pathOf, same, test } from "./harness.mjs";

const VIEWS = ["overview", "timeline", "ranges", "flame", "map", "sites", "compare"];

test("every view of every page opens without an error or a request", async () => {
  for (const name of ["train", "replay", "hostile", "leaks", "killed", "clean", "torch", "timeline", "ranges", "ranks", "compare"]) {
    const page = await open(name);
    for (const view of VIEWS) {
      await go(page, view);
    }
    if (page.troubles.length) throw new Error(`${name}: ${page.troubles.join("; ")}`);
  }
});

test("the page names no other host", () => {
  const text = readFileSync(pathOf("train.html"), "utf8");
  const hosts = [...text.matchAll(/\b(?:src|href)\s*=\s*["']?(https?:)?\/\/[^"'\s>]+/g)].map((match) => match[0]);
  same(hosts, [], "links and sources");
  holds(text.includes("default-src 'none'"), "its policy forbids them");
});

test("what a program calls itself is text, not markup", async () => {
  const page = await open("hostile");
  const words = documentOf("hostile").process.command;
  holds(words.some((word) => word.includes("</script>")) && words.some((word) => word.includes("\u2028")), "the file holds them");
  for (const view of VIEWS) await go(page, view);
  await go(page, "overview");
  const title = await page.locator("h1").textContent();
  holds(title.includes("</script><script>window.hit = 1</script>") && title.includes("<img src=x"), title);
  same(await page.evaluate(() => window.hit), undefined, "nothing of it ran");
});

test("ten megabytes: the page is small, and so is what it keeps in the document", async () => {
  holds(statSync(pathOf("many.json")).size > 10e6, "the document is that large");
  holds(statSync(pathOf("many.html")).size < 2e6, "the page is not");
  const page = await open("many");
  for (const view of VIEWS) {
    await go(page, view);
    const nodes = await page.evaluate(() => document.querySelectorAll("main *").length);
    holds(nodes < 8000, `${view} made ${nodes} elements`);
  }
});

test("light and dark, by the system and by choice, with enough contrast", async () => {
  for (const scheme of ["light", "dark"]) {
    const page = await open("train", "overview", { colorScheme: scheme });
    const color = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const system = await color();
    const bright = (text) => Number(text.match(/\d+/)[0]) > 128;
    same(bright(system), scheme === "light", `background of ${scheme}`);
    for (const choice of ["light", "dark"]) {
      await page.getByLabel("Theme").selectOption(choice);
      same(bright(await color()), choice === "light", `chosen ${choice}`);
      const poor = await page.evaluate(contrasts);
      same(poor, [], `text of too little contrast, ${choice}`);
    }
  }
});

/* Texts whose contrast with what lies behind them is under 4.5 (WCAG 2.1, AA). Runs in the page. */
function contrasts() {
  const channel = (value) => (value / 255 <= 0.03928 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
  const parse = (text) => text.match(/[\d.]+/g)?.map(Number) ?? [0, 0, 0, 0];
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const [r, g, b, alpha = 1] = parse(getComputedStyle(at).backgroundColor);
      if (alpha > 0.9) return [r, g, b];
    }
    return [255, 255, 255];
  };
  const poor = [];
  for (const element of document.querySelectorAll("main *, nav *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || !element.getClientRects().length || element.closest(".visually-hidden, svg, option")) continue;
    const [a, b] = [light(parse(getComputedStyle(element).color)), light(behind(element))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) poor.push(`${element.className || element.tagName}: ${element.textContent.slice(0, 30)}`);
  }
  return [...new Set(poor)];
}

/* What reaches beyond the window, but what scrolls in a box of its own. Runs in the page. */
function wider() {
  const own = ".scroll-x, .big-box, .flame-frame, nav, .bar-whole, .visually-hidden";
  const beyond = [...document.querySelectorAll("body *")].filter((element) => element.getClientRects().length && !element.closest(own) &&
    element.getBoundingClientRect().right > innerWidth + 0.5 && getComputedStyle(element).position !== "absolute");
  return [document.documentElement.scrollWidth > innerWidth ? `the page is ${document.documentElement.scrollWidth} wide` : null,
    ...beyond.slice(0, 3).map((element) => `${element.tagName} ${element.className} ends at ${Math.round(element.getBoundingClientRect().right)}`)].filter(Boolean);
}

test("at 360, 800, 1440 and 2560 pixels, nothing is wider than the window", async () => {
  for (const [i, name] of ["replay", "leaks", "held", "ranges", "compare"].entries()) {
    const page = await open(name, "overview", { colorScheme: i % 2 ? "dark" : "light" });
    for (const view of [...VIEWS, "a site"]) {
      if (view !== "a site") await go(page, view);
      else if (name !== "compare") {
        await go(page, "sites");
        await page.getByRole("table", { name: "Allocation sites" }).locator("tbody button").first().click();
      }
      for (const width of [360, 800, 1440, 2560]) {
        await page.setViewportSize({ width, height: 900 });
        await drawn(page);
        same(await page.evaluate(wider), [], `${name} ${view} at ${width}`);
      }
    }
  }
});

test("keyboard: a skip link first, then the views, and where one is", async () => {
  const page = await open("train");
  await page.keyboard.press("Tab");
  same(await page.evaluate(() => document.activeElement.textContent), "Skip to the content", "first");
  await page.keyboard.press("Enter");
  same(await page.evaluate(() => document.activeElement.id), "view", "the skip link leads to the content");
  await page.getByRole("navigation").getByRole("link", { name: "Timeline" }).focus();
  await page.keyboard.press("Enter");
  await page.locator(".view-timeline h1").waitFor();
  same(await page.getByRole("navigation").getByRole("link", { name: "Timeline" }).getAttribute("aria-current"), "page", "current");
  holds((await page.title()).startsWith("Timeline"), "title");
});

test("screen readers: every control has a name, every picture a table", async () => {
  for (const name of ["replay", "compare"]) {
    const page = await open(name);
    for (const view of VIEWS) {
      await go(page, view);
      const nameless = await page.evaluate(() => [...document.querySelectorAll("button, select, input, [role=region], [role=application], [role=tree]")]
        .filter((one) => !(one.getAttribute("aria-label") || one.labels?.[0]?.textContent.trim() || one.textContent.trim()))
        .map((one) => one.outerHTML.slice(0, 80)));
      same(nameless, [], `${name} ${view}`);
      same(await page.locator("main h1").count(), 1, "one first heading");
      const unnamed = await page.evaluate(() => [...document.querySelectorAll("main table")].filter((one) => !one.caption?.textContent).length);
      same(unnamed, 0, "tables without a caption");
    }
    for (const view of ["timeline", "flame", "map"]) {
      await go(page, view);
      holds((await page.locator(`.view-${view} table`).count()) > 0, `${view} has its figures in a table`);
    }
  }
});
