import { bytesIn, documentOf, go, holds, open, same, sum, test } from "./harness.mjs";

const rowsOf = async (table) => {
  const list = [];
  for (const row of await table.locator("tbody tr").all()) list.push(await bytesIn(row));
  return list;
};

for (const name of ["train", "replay", "leaks", "torch", "killed", "clean"]) {
  test(`overview: usage of ${name} is the document's`, async () => {
    const page = await open(name);
    const usage = documentOf(name).usage;
    same(await rowsOf(page.getByRole("region", { name: "Usage by device" })),
      usage.map((row) => [row.current_bytes, row.peak_bytes, row.allocated_bytes, row.freed_bytes]), "bytes");
    const cells = await page.getByRole("region", { name: "Usage by device" }).locator("tbody tr").evaluateAll((rows) =>
      rows.map((row) => [...row.querySelectorAll(".number")].map((cell) => Number(cell.textContent.replaceAll(",", "")))));
    same(cells, usage.map((row) => [row.allocations, row.frees, row.failures]), "counts");
  });

  test(`overview: findings of ${name}, most severe first, with their advice`, async () => {
    const page = await open(name);
    const { findings } = documentOf(name);
    const shown = page.locator(".findings > li");
    same(await shown.locator("h3").evaluateAll((list) => list.map((one) => one.lastChild.textContent)), findings.map((one) => one.title), "titles");
    same(await shown.evaluateAll((list) => list.map((one) => one.classList[1])), findings.map((one) => one.severity), "severities");
    same(await shown.locator(".advice li").allTextContents(), findings.flatMap((one) => one.advice), "advice");
    const rank = { error: 0, warning: 1, note: 2 };
    const ranks = findings.map((one) => rank[one.severity]);
    same(ranks, [...ranks].sort(), "order");
  });
}

test("overview: the ledger's rows add up to the driver's figure", async () => {
  for (const name of ["train", "replay"]) {
    const page = await open(name);
    const [ledger] = documentOf(name).ledger;
    const section = page.locator("section[aria-labelledby=ledger]");
    const [driver, ...rows] = await bytesIn(section);
    same(driver, ledger.process_used_bytes, "the driver's figure");
    same(rows, [...ledger.rows.map((row) => row.bytes), ledger.unexplained_bytes], "rows");
    same(sum(rows), driver, "sum");
    const widths = await section.locator(".bar-part").evaluateAll((parts) => parts.map((part) => part.getBoundingClientRect().width));
    const whole = await section.locator(".bar-whole").evaluate((bar) => bar.getBoundingClientRect().width);
    rows.filter((bytes) => bytes > 0).forEach((bytes, i) =>
      holds(Math.abs(widths[i] / whole - bytes / driver) < 0.01, `part ${i} is ${widths[i]} of ${whole} for ${bytes} of ${driver}`));
  }
});

test("overview: PyTorch's figures and each out-of-memory event", async () => {
  const page = await open("replay");
  const document = documentOf("replay");
  const [torch] = document.torch;
  same(await rowsOf(page.getByRole("region", { name: "PyTorch's allocator" })), [[torch.allocated_bytes, torch.allocated_peak_bytes,
    torch.reserved_bytes, torch.reserved_peak_bytes, torch.releasable_bytes, torch.inactive_split_bytes]], "torch");
  const events = page.locator("section[aria-labelledby=ooms] details");
  same(await events.count(), document.ooms.length, "events");
  holds(document.ooms.length === 2, "the replayed run has two");
  for (const [i, oom] of document.ooms.entries()) {
    await events.nth(i).locator("summary").click();
    same((await bytesIn(events.nth(i)))[0], oom.requested_bytes, "requested");
    const holders = await bytesIn(events.nth(i).getByRole("region", { name: "Who held the memory" }));
    same(holders, oom.top_sites.map((top) => top.bytes), "holders");
  }
});

test("overview: the peak's categories add up to the peak", async () => {
  const page = await open("leaks");
  const document = documentOf("leaks");
  const [total, ...rows] = await bytesIn(page.locator("section[aria-labelledby=makeup] .ledger").first());
  const mine = document.categories.filter((one) => one.device === document.categories[0].device && one.level === document.categories[0].level);
  same(rows, mine.map((one) => one.bytes_at_peak), "categories");
  same(total, sum(rows), "sum");
});

test("overview: a leak of one function is one entry, with its call paths", async () => {
  const page = await open("many");
  const findings = documentOf("many").findings.filter((one) => one.id === "leak.exit");
  holds(findings.length > 10, "the document has one for each of many stacks");
  const entries = page.locator(".finding", { has: page.locator(".finding-id", { hasText: "leak.exit" }) });
  same(await entries.count(), 1, "entries");
  const title = await entries.locator("h3").textContent();
  holds(title.includes("allocate (many_sites.py:17)") && !title.includes("layer_0_") && title.endsWith(`, by ${findings.length} call paths`), title);
  holds(title.includes(`${(sum(findings, (one) => one.bytes) / 2 ** 20).toFixed(2)} MiB`), `${title}: their sum`);
  same(await bytesIn(entries), findings.map((one) => one.bytes), "its call paths");
});

test("overview: the chart, and the moment that the first finding is about", async () => {
  const oom = documentOf("replay").ooms[0];
  const page = await open("replay");
  const pinned = page.locator("section[aria-labelledby=memory] > p[role=status]");
  holds((await pinned.textContent()).includes(documentOf("replay").findings[0].title), await pinned.textContent());
  await page.locator("section[aria-labelledby=memory]").getByRole("link", { name: "flame graph" }).click();
  await page.locator(".view-flame h1").waitFor();
  same(await page.getByLabel("Moment", { exact: true }).inputValue(), String(oom.time_s), "the refusal");
  await page.getByLabel("Level").selectOption("driver");
  const [shown] = await bytesIn(page.locator(".view-flame p.note[role=status]").last());
  same(shown, oom.tracked_bytes, "what was live at the refusal, as the event has it");
  const leak = documentOf("train").findings[0];
  const other = await open("train");
  const stack = other.locator("section[aria-labelledby=memory] details");
  holds((await stack.textContent()).includes("Tensor.__init__"), "the leak's site is open");
  await go(other, "sites");
  const work = documentOf("train").sites.find((site) => site.id === leak.site);
  same((await bytesIn(other.locator("tr.about")))[0], work.work_bytes, "it is marked, with what it held at the end of the work");
});

test("overview: PyTorch's figures first, absent ones as absent", async () => {
  const page = await open("replay");
  const [torch] = documentOf("replay").torch;
  const tiles = await bytesIn(page.locator(".tiles"));
  same(tiles.slice(0, 7), [torch.reserved_peak_bytes, torch.reserved_bytes, torch.allocated_peak_bytes, torch.allocated_bytes,
    torch.reserved_bytes - torch.allocated_bytes, torch.releasable_bytes, torch.inactive_split_bytes], "tiles");
  const killed = await open("killed");
  same(documentOf("killed").leaks.exit_bytes, null, "a killed run has no leaks at exit");
  const tile = killed.locator(".tile", { hasText: "not freed at exit" });
  same(await tile.locator(".tile-value").textContent(), "not recorded", "and the page does not say 0");
});

test("overview: exact bytes instead of units", async () => {
  const page = await open("train");
  const peak = documentOf("train").totals[0].peak_bytes;
  const tile = page.locator(".tile-value").first();
  same(await tile.textContent(), "156.0 MiB", "in units");
  same(await tile.locator(".size").getAttribute("title"), `${peak.toLocaleString("en")} bytes`, "on hover");
  await page.getByLabel("Exact bytes").check();
  same(await tile.textContent(), peak.toLocaleString("en"), "exact");
});

test("several files: a row for each, each with its own views", async () => {
  const page = await open("ranks");
  const { runs, job } = documentOf("ranks");
  same((await rowsOf(page.getByRole("region", { name: "Files on this page" }))).map((row) => row[0]),
    runs.map((run) => sum(run.totals, (total) => total.peak_bytes)), "peaks");
  same(await page.locator("section[aria-labelledby=job] .finding h3").allTextContents(), job.findings.map((one) => one.title), "findings of the job");
  await page.getByLabel("File", { exact: true }).selectOption("1");
  const usage = runs[1].usage.map((row) => [row.current_bytes, row.peak_bytes, row.allocated_bytes, row.freed_bytes]);
  same(await rowsOf(page.getByRole("region", { name: "Usage by device" })), usage, "the second file's usage");
});
