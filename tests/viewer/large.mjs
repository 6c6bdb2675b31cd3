// A page with more than 10 MB of data: 900,000 events, each of which the timeline can go back over.

import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { bytesIn, documentOf, drawn, go, holds, open, pathOf, same, sum, test } from "./harness.mjs";

const makeUp = (page) => page.locator(".makeup");
const total = async (page) => (await bytesIn(makeUp(page).locator("[aria-live] > p").first()))[0];

test("large: more than 10 MB of data, and every view opens", async () => {
  const packed = /[A-Za-z0-9+/]{100000,}={0,2}/.exec(readFileSync(pathOf("large.html"), "latin1"))[0];
  holds(gunzipSync(Buffer.from(packed, "base64")).length > 10e6, "10 MB");
  const page = await open("large");
  for (const view of ["timeline", "flame", "map", "sites", "overview"]) await go(page, view);
});

test("large: the make-up at a mark, at the peak and at the end is what the report says", async () => {
  const page = await open("large", "timeline");
  const [whole, half] = [documentOf("large"), documentOf("large-half")];
  await page.getByLabel("Moment", { exact: true }).selectOption("peak");
  same(await total(page), whole.torch[0].allocated_peak_bytes, "peak");
  await page.getByLabel("Moment", { exact: true }).selectOption("end");
  same(await total(page), whole.torch[0].allocated_bytes, "end");
  await page.getByLabel("Moment", { exact: true }).selectOption(String(whole.marks[0].time_s));
  same(await total(page), half.torch[0].allocated_bytes, "mark, by --at its time");
  same(sum(await bytesIn(makeUp(page).locator("tbody"))), half.torch[0].allocated_bytes, "its rows");
  holds((await makeUp(page).textContent()).includes("To the byte"), "said to be exact");
});

test("large: the slider and the zoom answer", async () => {
  const page = await open("large", "timeline");
  const slider = page.getByLabel("Position");
  const seen = new Set();
  for (const part of [1000, 4000, 7000]) {
    await slider.fill(String(part));
    await drawn(page);
    seen.add(await total(page));
  }
  same(seen.size, 3, "three moments, three figures");
  await page.getByRole("button", { name: "Zoom in" }).click();
  await drawn(page);
});
