import { bytesIn, documentOf, holds, open, pathOf, same, sum, test } from "./harness.mjs";

const view = (page) => page.locator(".view-compare");

async function sameAsDiff(page) {
  const changed = documentOf("compare").diff.sites.filter((site) => site.change !== "same");
  holds(changed.length > 0, "something changed");
  const table = page.getByRole("table", { name: "Sites of both files" });
  same(await table.getAttribute("aria-rowcount"), String(changed.length + 1), "rows");
  const rows = await table.locator("tbody tr:not(.spacer)").evaluateAll((list) => list.map((row) =>
    [row.querySelector(".tag").textContent, ...[...row.querySelectorAll("[data-bytes]")].map((one) => Number(one.dataset.bytes))]));
  const expected = changed.map((site) => [site.change, site.new_live_bytes - site.old_live_bytes, site.new_live_bytes, site.old_live_bytes,
    site.new_peak_bytes - site.old_peak_bytes, site.new_peak_bytes, site.old_peak_bytes]);
  const order = (list) => [...list].sort((a, b) => JSON.stringify(a).localeCompare(JSON.stringify(b)));
  same(order(rows), order(expected), "changes, as gpumem-report diff has them");
}

test("compare: sites that changed are those of gpumem-report diff", async () => {
  const page = await open("compare", "compare");
  await sameAsDiff(page);
  const [now, before] = [documentOf("compare").totals[0], documentOf("train").totals[0]];
  const totals = await bytesIn(page.getByRole("region", { name: "Totals of both files" }));
  same(totals, [now.current_bytes, before.current_bytes, now.current_bytes - before.current_bytes, now.peak_bytes, before.peak_bytes,
    now.peak_bytes - before.peak_bytes], "totals");
});

test("compare: the flame graph of the difference", async () => {
  const page = await open("compare", "compare");
  const root = page.locator(".view-compare .flame g.frame").first();
  const sites = documentOf("compare").diff.sites;
  const data = await root.evaluate((element) => ({ ...element.__data__.data, children: null, sites: null, frame: null }));
  same([data.before, data.after], [sum(sites, (site) => site.old_live_bytes), sum(sites, (site) => site.new_live_bytes)], "the root");
  holds((await root.getAttribute("aria-label")).includes("(+30.00 MiB)"), "thirty more steps keep thirty MiB");
  const fill = await root.locator("rect").evaluate((rect) => getComputedStyle(rect).fill);
  const [red, , blue] = fill.match(/\d+/g).map(Number);
  holds(red > blue + 40, `more is red, this is ${fill}`);
  await view(page).getByLabel("Before").selectOption("1");
  await view(page).getByLabel("After").selectOption("0");
  const turned = await page.locator(".view-compare .flame g.frame").first();
  holds((await turned.getAttribute("aria-label")).includes("(−30.00 MiB)"), "turned round");
  const other = (await turned.locator("rect").evaluate((rect) => getComputedStyle(rect).fill)).match(/\d+/g).map(Number);
  holds(other[2] > other[0] + 40, "less is blue");
});

for (const [what, name] of [["page", "compare.html"], ["document", "train.json"]])
  test(`compare: a second ${what} opened from disk`, async () => {
    const page = await open("train", "compare");
    holds((await view(page).textContent()).includes("holds one file"), "it says that there is one");
    await view(page).getByLabel("Open another").setInputFiles(pathOf(name));
    await page.getByRole("table", { name: "Sites of both files" }).waitFor();
    if (what === "page") {
      await view(page).getByLabel("After").selectOption("2");
      await sameAsDiff(page);
    } else holds((await view(page).textContent()).includes("0 of "), "the same run has no changes");
  });

test("compare: a file that is neither is refused with a reason", async () => {
  const page = await open("train", "compare");
  await view(page).getByLabel("Open another").setInputFiles(pathOf("train.gmt"));
  await page.getByText("neither a page of gpumem-report html nor JSON").waitFor();
});
