import { bytesIn, documentOf, holds, open, same, sum, test } from "./harness.mjs";

const view = (page) => page.locator(".view-map");
const note = (page) => bytesIn(view(page).locator("p.note[role=status]"));

test("memory map: PyTorch's segments hold what PyTorch reserved, their blocks what it allocated", async () => {
  for (const name of ["replay", "torch"]) {
    const page = await open(name, "map?at=end");
    const document = documentOf(name);
    const type = view(page).getByLabel("Type");
    if (await type.count()) await type.selectOption("segment");
    const [reserved, used, holes] = await note(page);
    const row = document.fragmentation.find((one) => one.level === "torch");
    same([reserved, used, holes], [row.reserved_bytes, row.used_bytes, row.free_bytes], name);
    const table = page.getByRole("table", { name: "Segments" });
    await table.getByRole("button", { name: "Largest hole" }).click();
    same((await bytesIn(table.locator("tbody tr").nth(1)))[3], row.largest_free_bytes, "largest hole");
  }
});

test("memory map: without a framework every live byte is a block", async () => {
  for (const name of ["train", "many"]) {
    const page = await open(name, "map?at=end");
    const document = documentOf(name);
    const [reserved, used, holes] = await note(page);
    const slab = document.fragmentation.find((row) => row.level === "slab"); // all of it is in slabs
    same(used, document.totals[0].current_bytes, "used");
    same([reserved, used, holes], [slab.reserved_bytes, slab.used_bytes, slab.free_bytes], "slabs");
    const blocks = await page.evaluate(() => [...document.querySelectorAll(".view-map table.big")][0].getAttribute("aria-rowcount"));
    same(Number(blocks) - 1, slab.reserved_bytes / (2 << 20), "a row for each slab");
  }
});

test("memory map: who pins the holes", async () => {
  const page = await open("replay", "map?at=end");
  const pinned = documentOf("replay").fragmentation.flatMap((row) => row.pinned_by);
  holds(pinned.length > 0, "the file has pinned segments");
  const rows = await page.getByRole("table", { name: "Sites whose blocks pin holes" }).locator("tbody tr:not(.spacer)").evaluateAll((list) =>
    list.map((row) => [...row.querySelectorAll("[data-bytes]")].map((one) => Number(one.dataset.bytes))));
  const expected = pinned.map((pin) => [pin.bytes, pin.hole_bytes]).sort((a, b) => b[1] - a[1]);
  same(rows.map((row) => row[1]), expected.map((row) => row[1]), "holes");
  same(sum(rows, (row) => row[0]), sum(expected, (row) => row[0]), "bytes");
});

/* The colours of the canvas along a line's bar, from left to right. */
const colorsOf = (page, line) => page.locator(".map-box canvas").evaluate((canvas, number) => {
  const left = 300 * devicePixelRatio;
  const { data } = canvas.getContext("2d").getImageData(left, Math.round((number * 26 + 13) * devicePixelRatio), canvas.width - left - 2, 1);
  return Array.from({ length: data.length / 4 }, (_, i) => data.slice(4 * i, 4 * i + 3).join());
}, line);

test("memory map: blocks are drawn where they lie, holes between them", async () => {
  const page = await open("replay", "map?at=end");
  await view(page).getByLabel("A line is").selectOption("0");
  // The first segment in order of address: 20 MiB, blocks in its first 60 %, a hole to 80 %, a block.
  const table = page.getByRole("table", { name: "Segments" });
  await table.getByRole("button", { name: "Address" }).click();
  const [bytes, used] = await bytesIn(table.locator("tbody tr").nth(1));
  holds(used > 0 && used < bytes, "the first segment has blocks and holes");
  const colors = await colorsOf(page, 0);
  const [block] = colors;
  const share = colors.filter((color) => color === block).length / colors.length;
  holds(Math.abs(share - used / bytes) < 0.03, `${share} of the line has the block's colour, ${used / bytes} is used`);
});

test("memory map: hover and keys tell the block and its stack, Enter opens its site", async () => {
  const page = await open("train", "map?at=end");
  const box = await page.locator(".map-box").boundingBox();
  await page.mouse.move(box.x + 400, box.y + 13);
  const tip = page.getByRole("tooltip");
  await tip.waitFor();
  holds(/1\.00 MiB at 0x/.test(await tip.textContent()), await tip.textContent());
  holds((await tip.locator("li").first().textContent()).startsWith("Tensor.__init__"), "the stack");
  await page.locator(".map-box").focus();
  await page.keyboard.press("ArrowDown");
  const told = page.locator("#announcer");
  holds(/slab of small allocations 0x[0-9a-f]+, 2\.00 MiB/.test(await told.textContent()), await told.textContent());
  await page.keyboard.press("ArrowRight");
  holds(/^1\.00 MiB at 0x/.test(await told.textContent()), await told.textContent());
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor();
  await page.keyboard.press("Escape");
  same(await page.getByRole("dialog").count(), 0, "closed");
});

test("memory map: colours by age and library, orders, one scale", async () => {
  const page = await open("replay", "map?at=end");
  const picture = () => page.locator(".map-box canvas").evaluate((canvas) => canvas.toDataURL());
  const seen = new Set([await picture()]);
  for (const [control, value] of [["Colour", "age"], ["Order", "size"], ["Scale", "1"], ["Colour", "site"]]) {
    await view(page).getByLabel(control, { exact: true }).selectOption(value);
    const now = await picture();
    holds(!seen.has(now), `${control} ${value} changes the picture`);
    seen.add(now);
  }
});
