// The stacked timeline, and the views that follow the moment that is pinned on it.

import { bytesIn, documentOf, drawn, go, holds, open, same, sum, test } from "./harness.mjs";

const plot = (page) => page.locator(".view-timeline .stack-plot");
const note = (page) => page.locator(".view-timeline .stack-chart + p.note").textContent();
const at = async (page) => new URLSearchParams((await page.evaluate(() => location.hash)).split("?")[1] ?? "").get("at");

/* The end of the axis: the recording's, or the last stretch of a line. */
const endOf = (document) => Math.max(document.process.duration_s, ...document.timeline.map((line) => line.start_s + line.width_s * line.max.length));

/* Points at a share of the width, near the bottom or at a height; returns the tip's bytes: [band, all bands]. */
async function hover(page, share, height = 0.99) {
  const box = await plot(page).boundingBox();
  await page.mouse.move(box.x + box.width * share, box.y + box.height * height);
  return bytesIn(page.getByRole("tooltip"));
}

/* How much of a column of the plot each colour has, from the bottom up. */
const colorsAt = (page, share) => page.locator(".view-timeline .stack-chart").evaluate((element, where) => {
  const [canvas, box] = [element.querySelector("canvas"), element.querySelector(".stack-plot")];
  const x = Math.floor((box.offsetLeft + box.offsetWidth * where) * devicePixelRatio);
  const { data } = canvas.getContext("2d").getImageData(x, box.offsetTop * devicePixelRatio, 1, box.offsetHeight * devicePixelRatio);
  const runs = [];
  for (let i = data.length / 4 - 1; i >= 0; i--) {
    const color = data.slice(4 * i, 4 * i + 4).join();
    if (runs[runs.length - 1]?.color === color) runs[runs.length - 1].pixels++;
    else runs.push({ color, pixels: 1 });
  }
  return runs.filter((run) => run.pixels > 2 && !run.color.endsWith(",0"));
}, share);

test("stacked timeline: the peak is in sight, to the byte, and its bands are what held it", async () => {
  const page = await open("train", "timeline?by=site");
  const document = documentOf("train");
  const share = document.totals[0].peak_at_s / endOf(document);
  const [, whole] = await hover(page, share);
  same(whole, document.totals[0].peak_bytes, "all bands at the peak's pixel");
  const sites = document.sites.map((site) => site.bytes_at_peak).filter((bytes) => bytes > 0).sort((a, b) => a - b);
  const runs = await colorsAt(page, share);
  const pixels = sum(runs, (run) => run.pixels);
  const found = runs.map((run) => run.pixels / pixels).sort((a, b) => a - b);
  same(found.length, sites.filter((bytes) => bytes > whole / 100).length, "a colour for each site that can be seen");
  sites.slice(-found.length).forEach((bytes, i) => holds(Math.abs(found[i] - bytes / whole) < 0.02, `band ${i} is ${found[i]} of the column for ${bytes / whole}`));
});

test("stacked timeline: hover tells the band and its bytes, a click pins the moment, other views follow it", async () => {
  const page = await open("large", "timeline");
  const [document, half] = [documentOf("large"), documentOf("large-half")];
  const [band, whole] = await hover(page, 0.5, 0.9);
  holds(band > 0 && band <= whole && whole <= document.torch[0].allocated_peak_bytes, `${band} of ${whole}`);
  await page.mouse.down();
  await page.mouse.up();
  holds(Number(await at(page)) > 0.4 * endOf(document) && Number(await at(page)) < 0.6 * endOf(document), `pinned ${await at(page)}`);
  same((await bytesIn(page.locator(".makeup [aria-live] > p").first()))[0], whole, "the make-up is that of the column");
  const moment = document.marks[0].time_s;
  await page.goto(page.url().replace(/at=[\d.]+/, `at=${moment}`));
  await go(page, "flame");
  same((await bytesIn(page.locator(".view-flame p.note[role=status]").last()))[0], half.torch[0].allocated_bytes, "flame graph, by --at");
  await go(page, "sites");
  await page.getByLabel("Level").selectOption("torch");
  same((await bytesIn(page.locator(".view-sites p.note[role=status]")))[0], sum(half.sites.filter((site) => site.level === "torch"), (site) => site.live_bytes), "sites, by --at");
  const counts = await page.getByRole("table", { name: "Allocation sites" }).locator("tbody tr:not(.spacer)").evaluateAll((rows) =>
    rows.map((row) => Number(row.querySelector(".number").textContent.replaceAll(",", ""))));
  const order = (list) => [...list].sort((a, b) => a - b);
  same(order(counts), order(half.sites.filter((site) => site.level === "torch").map((site) => site.live_count)).slice(-counts.length), "live counts, by --at");
  await go(page, "map");
  const row = half.fragmentation.find((one) => one.level === "torch");
  same((await bytesIn(page.locator(".view-map p.note[role=status]"))).slice(0, 3), [row.reserved_bytes, row.used_bytes, row.free_bytes], "map, by --at");
});

/* The rows of the map's table, in order of address: what is where. */
async function segmentRows(page) {
  const table = page.getByRole("table", { name: "Segments" });
  await table.getByRole("button", { name: "Address" }).click();
  return table.locator("tbody tr:not(.spacer)").evaluateAll((rows) => rows.map((row) => row.textContent));
}

for (const name of ["train", "replay", "expandable", "many"])
  test(`memory map of a moment: after the last event of ${name} it is the map of the end`, async () => {
    const page = await open(name, "map?at=end");
    const rows = await segmentRows(page);
    holds(rows.length > 0, "there is memory");
    const other = await open(name, `map?at=${endOf(documentOf(name))}`);
    same(await segmentRows(other), rows, "segments");
  });

test("memory map of a moment: as gpumem-report html --at draws it", async () => {
  for (const name of ["replay", "expandable"]) {
    const then = await open(`${name}-then`, "map?at=end");
    const page = await open(name, `map?at=${documentOf(`${name}-then`).marks.at(-1).time_s}`);
    same(await segmentRows(page), await segmentRows(then), name);
  }
});

test("stacked timeline: by segment, the bands are what is used of each", async () => {
  const page = await open("large", "timeline?by=segment&at=end");
  const bands = await page.locator(".makeup tbody tr").evaluateAll((rows) => rows.map((row) => Number(row.querySelector("[data-bytes]").dataset.bytes)));
  await go(page, "map");
  const used = await page.getByRole("table", { name: "Segments" }).locator("tbody tr:not(.spacer)").evaluateAll((rows) =>
    rows.map((row) => Number(row.querySelectorAll("[data-bytes]")[1].dataset.bytes)));
  const order = (list) => [...list].sort((a, b) => b - a);
  same(order(bands), order(used), "bytes");
});

test("stacked timeline: by event, every event has its place", async () => {
  const page = await open("train", "timeline?axis=event&at=peak");
  const document = documentOf("train");
  await page.locator(".view-timeline .stack-chart").focus();
  const total = async () => (await bytesIn(page.locator(".makeup [aria-live] > p").first()))[0];
  same(await total(), document.totals[0].peak_bytes, "the peak");
  const seen = [];
  for (const key of ["ArrowLeft", "ArrowRight", "ArrowRight"]) {
    await page.keyboard.press(key);
    seen.push(await total());
  }
  same(seen[1], document.totals[0].peak_bytes, "back at the peak");
  holds(seen[0] < seen[1] && seen[2] < seen[1], `${seen}: an event less, an event more`);
});

test("stacked timeline: without events it is drawn from the windows, and says so", async () => {
  const page = await open("forgetful", "timeline?by=site");
  const document = documentOf("forgetful");
  holds(/No history of events \(the file keeps no events\).*GPUMEMTRACE_EVENTS=all/.test(await note(page)), await note(page));
  same(await page.getByLabel("Across").count(), 0, "no axis of events");
  const end = endOf(document);
  const [, peak] = await hover(page, document.totals[0].peak_at_s / end);
  same(peak, document.totals[0].peak_bytes, "the peak is in sight");
  const starts = [...new Set(document.sites.flatMap((site) => site.windows.map((window) => window.start_s)))].sort((a, b) => a - b);
  holds(starts.length > 4, "windows");
  const i = starts.length - 1;
  const middle = (starts[i] + end) / 2;
  const [least, most, whole] = await hover(page, middle / end);
  const windows = document.sites.map((site) => site.windows.filter((window) => window.start_s <= middle).at(-1)).filter(Boolean);
  same(whole, sum(windows, (window) => window.min_bytes), "what was held at least in the last window");
  holds(windows.some((window) => window.min_bytes === least && window.max_bytes === most), `the band's window has ${least} to ${most}`);
  holds(windows.some((window) => window.max_bytes > window.min_bytes), "the window has a range");
  await go(page, "map");
  await page.getByLabel("Moment", { exact: true }).selectOption("peak");
  holds((await page.locator(".view-map").textContent()).includes("is not recorded (the file keeps no events), so the map shows the end"), "the map says so too");
});

test("the address holds everything: a link shows the same, the back button goes back", async () => {
  const page = await open("train", "timeline");
  const picture = () => page.locator(".view-timeline .stack-chart canvas").evaluate((canvas) => canvas.toDataURL());
  const whole = await picture();
  const box = await plot(page).boundingBox();
  await page.mouse.move(box.x + box.width * 0.1, box.y + 50);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.3, box.y + 60, { steps: 4 });
  await page.mouse.up();
  await drawn(page);
  const near = await picture();
  holds(near !== whole, "dragging zooms in");
  await page.getByLabel("Moment", { exact: true }).selectOption("peak");
  await go(page, "flame");
  await page.getByLabel("Find frames").fill("backward");
  await page.waitForFunction(() => location.hash.includes("find=backward"));
  await page.locator('.flame g.frame[name^="main ("]').click();
  await go(page, "sites");
  await page.getByLabel("Search").fill("init");
  await page.waitForFunction(() => location.hash.includes("q=init"));
  await page.getByRole("table", { name: "Allocation sites" }).getByRole("button", { name: "Total" }).click();
  await page.getByRole("table", { name: "Allocation sites" }).locator("tbody button").first().click();
  await page.getByRole("dialog").waitFor();
  const address = page.url();

  const other = await open("train", address.split("#")[1]);
  await other.getByRole("dialog").waitFor();
  same(await other.locator("dialog h2").textContent(), await page.locator("dialog h2").textContent(), "the open site");
  same(await other.getByLabel("Search").inputValue(), "init", "the search");
  const rows = (one) => one.getByRole("table", { name: "Allocation sites" }).locator("tbody").innerText();
  same(await rows(other), await rows(page), "the table");
  await other.keyboard.press("Escape");
  await go(other, "flame");
  same(await other.getByLabel("Find frames").inputValue(), "backward", "the frames that were looked for");
  holds((await other.locator(".chosen h2").textContent()).startsWith("main ("), "the magnified frame");
  await go(other, "timeline");
  same(await other.getByLabel("Moment", { exact: true }).inputValue(), "peak", "the moment");
  same(await other.locator(".view-timeline .stack-chart canvas").evaluate((canvas) => canvas.toDataURL()), near, "the zoom");

  await page.goBack();
  await page.waitForFunction(() => !document.querySelector("dialog"));
  await page.goBack();
  await page.locator(".view-flame h1").waitFor();
  for (let i = 0; i < 12 && !(await page.url().endsWith("#timeline")); i++) {
    await page.goBack();
    await drawn(page);
  }
  same(page.url().split("#")[1], "timeline", "back at the start");
  await drawn(page);
  same(await picture(), whole, "and all of it in sight");
});
