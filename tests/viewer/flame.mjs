import { bytesIn, documentOf, holds, open, same, sum, test } from "./harness.mjs";

const MOMENTS = { end: "live_bytes", peak: "bytes_at_peak", work: "work_bytes" };
const view = (page) => page.locator(".view-flame");
const label = (page, name) => page.locator(`.flame g.frame[name="${name}"]`);

/* Frames grow to their width: until the root has all of it. */
const settled = (page) => page.waitForFunction(() => {
  const svg = document.querySelector(".flame svg");
  return svg?.querySelector("g.frame rect")?.width.baseVal.value >= svg.width.baseVal.value - 0.01;
});
const whole = async (page) => (await bytesIn(view(page).locator("p.note[role=status]").last()))[0];

test("flame graph: the root holds every site's bytes, by each figure", async () => {
  for (const name of ["train", "replay", "leaks"]) {
    const page = await open(name, "flame");
    const { sites } = documentOf(name);
    const level = sites.some((site) => site.level === "torch") ? "torch" : "driver";
    for (const [moment, key] of Object.entries(MOMENTS)) {
      await view(page).getByLabel("Moment", { exact: true }).selectOption(moment);
      same(await whole(page), sum(sites.filter((site) => site.level === level), (site) => site[key]), `${name} at ${moment}`);
    }
    await view(page).getByLabel("Show", { exact: true }).selectOption("total");
    same(await whole(page), sum(sites.filter((site) => site.level === level), (site) => site.allocated_bytes), `${name} total`);
    await view(page).getByLabel("Show", { exact: true }).selectOption("count");
    const count = sum(sites.filter((site) => site.level === level), (site) => site.allocations);
    holds((await view(page).textContent()).includes(`In all: ${count.toLocaleString("en")} from`), `${name} count`);
  }
});

test("flame graph: a function's width is the bytes of the stacks that hold it", async () => {
  const page = await open("train", "flame");
  await view(page).getByLabel("Show", { exact: true }).selectOption("total");
  const { sites } = documentOf("train");
  const all = sum(sites, (site) => site.allocated_bytes);
  const forward = sum(sites.filter((site) => site.stack.some((frame) => frame.function === "Model.forward")), (site) => site.allocated_bytes);
  await settled(page);
  const root = await label(page, "all").locator("rect").evaluate((rect) => rect.width.baseVal.value);
  const wide = await page.locator('.flame g.frame[name^="Model.forward ("] rect').evaluateAll((list) => list.reduce((total, rect) => total + rect.width.baseVal.value, 0));
  holds(forward > 0 && Math.abs(wide / root - forward / all) < 0.005, `${wide} of ${root} for ${forward} of ${all}`);
  const tooltip = await page.locator('.flame g.frame[name^="Model.forward ("]').first().getAttribute("aria-label");
  holds(/Model\.forward.*: [\d.]+ [MG]iB, \d+ %/.test(tooltip), tooltip);
});

test("flame graph: inverted, the allocating frames come first and hold the same", async () => {
  const page = await open("train", "flame");
  const before = await whole(page);
  await view(page).getByLabel("Order").selectOption("callers");
  same(await whole(page), before, "bytes");
  const second = await page.locator(".flame g.frame").evaluateAll((list) => list.filter((one) => one.__data__.depth === 1).map((one) => one.__data__.data.name));
  same(second, ["Tensor.__init__ (train.py:19)"], "the frames below the root");
});

test("flame graph: Python or native frames alone, plumbing on demand", async () => {
  const page = await open("train", "flame");
  const kinds = () => page.locator(".flame g.frame").evaluateAll((list) => [...new Set(list.map((one) => one.__data__.data.frame?.kind).filter(Boolean))].sort());
  await view(page).getByLabel("Frames", { exact: true }).selectOption("python");
  same(await kinds(), ["python"], "Python only");
  await view(page).getByLabel("Frames", { exact: true }).selectOption("native");
  await view(page).getByLabel("Plumbing").check();
  same(await kinds(), ["native"], "native only");
});

test("flame graph: filters leave the sites that they name", async () => {
  const page = await open("leaks", "flame?at=end");
  const sites = documentOf("leaks").sites.filter((site) => site.level === "driver");
  for (const [field, key] of [["Kind", "kind"], ["Category", "category"], ["Device", "device"], ["Library", "library"]]) {
    const control = view(page).getByLabel(field, { exact: true });
    if (!(await control.count())) continue;
    for (const value of new Set(sites.map((site) => String(site[key] ?? { library: "unknown", category: "other" }[key] ?? null)))) {
      await control.selectOption(value);
      const mine = sites.filter((site) => String(site[key] ?? { library: "unknown", category: "other" }[key] ?? null) === value);
      same(await whole(page), sum(mine, (site) => site.live_bytes), `${field} ${value}`);
    }
    await control.selectOption("");
  }
});

test("flame graph: search says how many bytes were found", async () => {
  const page = await open("train", "flame");
  await view(page).getByLabel("Show", { exact: true }).selectOption("total");
  await view(page).getByLabel("Find frames").fill("model.BACKWARD");
  const said = view(page).locator("span.note[role=status]");
  await page.waitForFunction(() => document.querySelector(".view-flame span.note[role=status]").textContent !== "");
  const { sites } = documentOf("train");
  const found = sum(sites.filter((site) => site.stack.some((frame) => frame.function === "Model.backward")), (site) => site.allocated_bytes);
  const all = sum(sites, (site) => site.allocated_bytes);
  holds((await said.textContent()).includes(`${Math.round((100 * found) / all)} %`), await said.textContent());
  await view(page).getByLabel("Find frames").fill("(*[");
  await page.waitForFunction(() => document.querySelector(".view-flame span.note[role=status]").textContent.includes("0 frames"));
});

test("flame graph: with the keyboard", async () => {
  const page = await open("train", "flame");
  await label(page, "all").focus();
  await page.keyboard.press("ArrowDown");
  const focused = () => page.evaluate(() => document.activeElement.__data__?.data.name);
  const below = await focused();
  holds(below.startsWith("<module> (train.py:"), below);
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  holds((await page.locator(".chosen h2").textContent()).startsWith("main (train.py:"), "the chosen frame is told");
  await page.keyboard.press("ArrowUp");
  same(await focused(), below, "and back");
});

test("flame graph: the table's own bytes add up", async () => {
  const page = await open("leaks", "flame");
  const table = page.getByRole("table", { name: "Functions of the flame graph" });
  const own = await table.locator("tbody tr:not(.spacer)").evaluateAll((list) => list.map((row) => Number(row.querySelectorAll("[data-bytes]")[1].dataset.bytes)));
  same(sum(own), await whole(page), "sum");
});
