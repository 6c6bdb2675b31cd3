import { bytesIn, documentOf, drawn, holds, open, same, sum, test } from "./harness.mjs";

const view = (page) => page.locator(".view-sites");
const table = (page) => page.getByRole("table", { name: "Allocation sites" });
const rows = (page) => table(page).locator("tbody tr:not(.spacer)");

test("sites: every site of the document, with its figures, in the order asked for", async () => {
  for (const name of ["train", "leaks", "replay"]) {
    const page = await open(name, "sites?at=end");
    const { sites } = documentOf(name);
    same(await table(page).getAttribute("aria-rowcount"), String(sites.length + 1), "rows");
    for (const [title, key, at] of [["Live", "live_bytes", 0], ["Total", "allocated_bytes", 3], ["Own peak", "peak_bytes", 2]]) {
      const head = table(page).getByRole("columnheader", { name: title, exact: true });
      if ((await head.getAttribute("aria-sort")) !== "descending") await head.getByRole("button").click();
      const shown = [];
      for (const row of await rows(page).all()) shown.push((await bytesIn(row))[at]);
      same(shown, sites.map((site) => site[key]).sort((a, b) => b - a).slice(0, shown.length), title);
      await head.getByRole("button").click();
      same((await bytesIn(rows(page).first()))[at], Math.min(...sites.map((site) => site[key])), `${title}, ascending`);
    }
  }
});

test("sites: what keeps a site's blocks alive, as the document has it", async () => {
  const document = documentOf("held");
  holds(document.holders.length > 0 && document.holders[0].chain.length > 2, "somebody looked");
  const mine = document.holders.filter((holder) => holder.site === document.holders[0].site);
  const page = await open("held", `sites?site=${mine[0].site}`);
  const dialog = page.getByRole("dialog");
  same(await dialog.locator(".holder").evaluateAll((list) => list.map((one) => [...one.querySelectorAll(".chain code")].map((step) => step.textContent))),
    mine.map((holder) => holder.chain), "chains, from a root to the block");
  same(await bytesIn(dialog.locator(".holder")), mine.map((holder) => holder.bytes), "bytes");
  const overview = await open("held");
  same(await bytesIn(overview.locator("section[aria-labelledby=holders]")), document.holders.slice(0, 8).map((holder) => holder.bytes), "the largest first");
});

test("sites: a level column where levels mix, none where there is one", async () => {
  for (const name of ["replay", "train"]) {
    const page = await open(name, "sites?at=end");
    const levels = new Set(documentOf(name).sites.map((site) => site.level));
    const column = table(page).getByRole("columnheader", { name: "Level" });
    same(await column.count(), levels.size > 1 ? 1 : 0, `${name} has ${[...levels]}`);
    if (levels.size < 2) continue;
    const shown = await rows(page).evaluateAll((list) => list.map((row) => row.cells[1].textContent));
    const expected = [...documentOf(name).sites].sort((a, b) => b.live_bytes - a.live_bytes).slice(0, shown.length);
    same([...shown].sort(), expected.map((site) => site.level).sort(), "levels");
  }
});

test("sites: filters and search", async () => {
  const page = await open("leaks", "sites?at=end");
  const { sites } = documentOf("leaks");
  const live = async () => (await bytesIn(view(page).locator("p.note[role=status]")))[0];
  await view(page).getByLabel("Verdict").selectOption("grow");
  same(await live(), sum(sites.filter((site) => site.verdict === "grow"), (site) => site.live_bytes), "verdict");
  await view(page).getByLabel("Verdict").selectOption("");
  await view(page).getByLabel("Search").fill("REMEMBER");
  const found = sites.filter((site) => site.stack.some((frame) => /remember/i.test(frame.function ?? "")));
  holds(found.length > 0 && found.length < sites.length, "the search means something");
  await page.waitForFunction((text) => document.querySelector(".view-sites p.note[role=status]").textContent.startsWith(text), `${found.length} of ${sites.length} sites`);
  same(await live(), sum(found, (site) => site.live_bytes), "search");
});

test("sites: thousands are in the table, few in the page", async () => {
  const page = await open("many", "sites?at=end");
  const { sites } = documentOf("many");
  holds(sites.length >= 2000, "there are thousands");
  same(await table(page).getAttribute("aria-rowcount"), String(sites.length + 1), "rows");
  const box = view(page).locator(".big-box");
  for (const part of [0, 0.5, 1]) {
    await box.evaluate((element, share) => { element.scrollTop = share * element.scrollHeight; }, part);
    await drawn(page);
    holds((await rows(page).count()) < 90, "rows in the page");
    const numbers = await rows(page).evaluateAll((list) => list.map((row) => Number(row.getAttribute("aria-rowindex"))));
    holds(numbers.every((number, i) => i === 0 || number === numbers[i - 1] + 1), "in order");
  }
  const smallest = Math.min(...sites.map((site) => site.live_bytes));
  same((await bytesIn(rows(page).last()))[0], smallest, "the last row");
  same(await rows(page).last().getAttribute("aria-rowindex"), String(sites.length + 1), "its number");
});

test("sites: one in full, by keyboard, and back", async () => {
  const page = await open("train", "sites?at=end");
  const site = [...documentOf("train").sites].sort((a, b) => b.live_bytes - a.live_bytes)[0];
  const button = rows(page).first().getByRole("button");
  await button.focus();
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog");
  same(await dialog.locator(".stack li").count(), site.stack.length, "frames");
  const named = site.stack.map((frame) => frame.function);
  const shown = await dialog.locator(".stack .frame-function").allTextContents();
  same(shown.map((text, i) => named[i] && text), named, "innermost first");
  const own = await dialog.locator(".stack li.own .frame-function").textContent();
  same(own, "Tensor.__init__", "the frame that matters is marked");
  same((await bytesIn(dialog))[0], site.live_bytes, "live");
  same(await dialog.locator(".window-bars li").count(), site.windows.length, "windows");
  await page.keyboard.press("Escape");
  same(await button.evaluate((element) => element === document.activeElement), true, "focus returns");
});
