import { bytesIn, documentOf, drawn, go, holds, open, same, test } from "./harness.mjs";

const table = (page) => page.getByRole("table", { name: "Ranges" });
const row = (page, title) => table(page).locator("tbody tr", { has: page.getByRole("button", { name: title, exact: true }) }).first();

test("ranges: a row for each step, pass and layer, with the document's figures", async () => {
  const page = await open("ranges", "ranges");
  const { ranges } = documentOf("ranges");
  same(await table(page).getAttribute("aria-rowcount"), String(ranges.filter((range) => range.closed).length + 1), "rows");
  for (const path of ["step #", "step 7", "step # / forward", "step # / forward / layer #", "step # / backward"]) {
    const range = ranges.find((one) => one.path === path);
    same(await bytesIn(row(page, path.split(" / ").pop())),
      [range.lowest_peak_bytes, range.median_peak_bytes, range.peak_bytes, range.retained_bytes, range.work_bytes], path);
  }
  const titles = await table(page).locator("tbody tr th button").allTextContents();
  same(titles.slice(0, 3), ["step #", "step 0", "step 1"], "the order");
  await table(page).getByRole("button", { name: "Highest peak" }).click();
  same((await bytesIn(table(page).locator("tbody tr").nth(1)))[2], Math.max(...ranges.map((range) => range.peak_bytes)), "sorted by the highest peak");
});

test("ranges: the worst times of one, what is live of it, and its place on the timeline", async () => {
  const page = await open("ranges", "ranges");
  const step = documentOf("ranges").ranges.find((range) => range.path === "step #");
  await row(page, "step #").getByRole("button").click();
  const chosen = page.locator(".chosen");
  same(await chosen.locator("h3").allTextContents().then((list) => list.slice(0, 2)), ["Highest peak: step 4", "Retained most: step 7"], "the worst");
  same(await bytesIn(chosen.locator("li")), [...step.most_retained.sites, ...step.sites].map((one) => one.bytes), "what is live");
  holds((await page.evaluate(() => location.hash)).includes("range="), "the address has the range");
  await chosen.getByRole("link", { name: "show in the timeline" }).first().click();
  await page.locator(".view-timeline h1").waitFor();
  await drawn(page);
  const text = await page.locator(".view-timeline").textContent();
  holds(text.includes("Marked: the range step #") && text.includes("highest peak (step 4)") && text.includes("retained most (step 7)"), "it is marked");
  const address = new URLSearchParams((await page.evaluate(() => location.hash)).split("?")[1]);
  const [from, to] = address.get("zoom").split(",").map(Number);
  holds(from <= step.highest.start_s && to >= step.highest.end_s && to - from < 4 * (step.highest.end_s - step.highest.start_s) + 1e-5, "its time is in sight");
  same(Number(address.get("at")), step.highest.peak_at_s, "the moment of the peak is pinned");
  await page.getByRole("link", { name: "remove the mark" }).click();
  await drawn(page);
  holds(!(await page.locator(".view-timeline").textContent()).includes("Marked:"), "the mark is gone");
  await go(page, "ranges");
  same(await page.locator(".chosen h3").count(), 0, "no range is chosen");
});

test("ranges: a run without any says how there could be some", async () => {
  const page = await open("train", "ranges");
  holds((await page.locator(".view-ranges").textContent()).includes("No range was closed"), "it is said");
});
