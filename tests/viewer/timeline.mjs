import { bytesIn, documentOf, holds, open, same, sum, test } from "./harness.mjs";

const makeUp = (page) => page.locator(".makeup");
const total = async (page) => (await bytesIn(makeUp(page).locator("[aria-live] > p").first()))[0];
const rows = async (page) => sum(await bytesIn(makeUp(page).locator("tbody")));

/* Where the slider ends: with the last stretch of any line. */
const endOf = (document) => Math.max(document.process.duration_s, ...document.timeline.map((line) => line.width_s * line.max.length));

test("timeline: one line for each series, with the figures of each stretch", async () => {
  for (const name of ["train", "replay", "timeline"]) {
    const page = await open(name, "timeline");
    const { timeline } = documentOf(name);
    same(await page.locator(".series-one output").evaluateAll((list) => list.map((one) => one.dataset.series)),
      timeline.map((line) => line.series), "series");
    const points = sum(timeline, (line) => line.max.length);
    const table = page.getByRole("table", { name: "Timeline" });
    same(await table.getAttribute("aria-rowcount"), String(points + 1), "rows of the table");
    await table.getByRole("button", { name: "Highest" }).click();
    same((await bytesIn(table.locator("tbody tr").nth(1)))[1], Math.max(...timeline.flatMap((line) => line.max)), "the highest of all");
  }
});

test("timeline: readings at a moment are those of the stretch that holds it", async () => {
  const page = await open("train", "timeline");
  const document = documentOf("train");
  const slider = page.getByLabel("Position");
  for (const part of [2500, 5000, 9000]) {
    await slider.fill(String(part));
    const moment = (endOf(document) * part) / 10000;
    for (const line of document.timeline) {
      const at = Math.min(line.max.length - 1, Math.floor(moment / line.width_s));
      const expected = line.min[at] === line.max[at] ? [line.max[at]] : [line.min[at], line.max[at]];
      same(await bytesIn(page.locator(`output[data-series=${line.series}]`)), expected, `${line.series} at ${moment}`);
    }
  }
});

test("timeline: what memory was made of, at the peak, the end and each mark", async () => {
  const page = await open("replay", "timeline");
  const document = documentOf("replay");
  await page.getByLabel("Level").selectOption("driver");
  await page.getByLabel("Moment", { exact: true }).selectOption("peak");
  same(await total(page), document.totals[0].peak_bytes, "peak");
  same(await rows(page), document.totals[0].peak_bytes, "its rows");
  await page.getByLabel("Moment", { exact: true }).selectOption("end");
  same(await total(page), document.totals[0].current_bytes, "end");
  holds(document.marks.length > 4, "the run has marks");
  for (const mark of document.marks) {
    await page.getByLabel("Moment", { exact: true }).selectOption(String(mark.time_s));
    same(await total(page), mark.current_bytes, `mark ${mark.name}, whose bytes the shim wrote down at that moment`);
    holds((await makeUp(page).textContent()).includes("To the byte"), "said to be exact");
  }
});

test("timeline: without the events it is said, and windows are shown", async () => {
  const page = await open("forgetful", "timeline?by=category");
  await page.getByLabel("Position").fill("5000");
  await makeUp(page).getByRole("columnheader", { name: "lowest" }).waitFor();
  holds((await makeUp(page).textContent()).includes("Not to the byte, since the file keeps no events"), "it is said");
  const { sites } = documentOf("forgetful");
  const moment = endOf(documentOf("forgetful")) / 2;
  const windows = sites.map((site) => site.windows.filter((window) => window.start_s <= moment).at(-1));
  holds(sites[0].windows.length > 2, "the file has windows");
  const shown = await bytesIn(makeUp(page).locator("tbody"));
  same(sum(shown), sum(windows, (window) => window.min_bytes + window.max_bytes), "lowest and highest of every category");
  same(await makeUp(page).locator("thead th").allTextContents(), ["category", "lowest", "highest"], "columns");
});

test("timeline: marks, failures and out-of-memory events are listed", async () => {
  const page = await open("replay", "timeline");
  const document = documentOf("replay");
  const table = page.getByRole("table", { name: "What happened" });
  const failed = sum(document.usage, (row) => row.failures);
  same(await table.getAttribute("aria-rowcount"), String(1 + document.marks.length + document.ooms.length + failed), "rows");
});

test("timeline: zooming in and out, hiding a series", async () => {
  const page = await open("train", "timeline");
  const axis = () => page.locator(".time-chart canvas").evaluate((canvas) => canvas.toDataURL().length + canvas.toDataURL().slice(-400));
  const whole = await axis();
  await page.getByRole("button", { name: "Zoom in" }).click();
  const near = await axis();
  holds(near !== whole, "it shows something else");
  await page.getByRole("button", { name: "Show all" }).click();
  same(await axis(), whole, "all again");
  await page.getByLabel("tracked allocations").uncheck();
  holds((await axis()) !== whole, "a line less");
  const box = await page.locator(".time-chart .u-over").boundingBox();
  await page.mouse.click(box.x + box.width * 0.5, box.y + box.height * 0.5);
  const moment = Number(await page.getByLabel("Position").inputValue());
  holds(moment > 4000 && moment < 6000, `a click in the middle chose ${moment}`);
});
