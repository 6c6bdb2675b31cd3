// Every allocation site, sorted and filtered.

import { h, size, number } from "../dom.js";
import { deviceName, time } from "../format.js";
import { Filters } from "../filters.js";
import { categoryTag, showSite, siteButton, verdictTag } from "../site.js";
import { BigTable, rowsNote } from "../table.js";

const bytes = (id, title, help) => ({ id, title, help, numeric: true, key: (site) => site[id], cell: (site) => size(site[id]) });
const plain = (id, title, help) => ({ id, title, help, numeric: true, width: "6.5rem", key: (site) => site[id], cell: (site) => number(site[id]) });
const word = (id, title, width = "7rem") => ({ id, title, width, key: (site) => site[id], cell: (site) => site[id] ?? "–" });

export const siteColumns = (run) => [
  { id: "place", title: "Site", width: "26rem", key: (site) => site.place, cell: (site) => siteButton(site, run) },
  { id: "verdict", title: "Verdict", width: "6rem", key: (site) => site.verdict, cell: (site) => verdictTag(site.verdict) },
  bytes("live_bytes", "Live", "bytes not freed yet"),
  plain("live_count", "Live count"),
  bytes("bytes_at_peak", "At peak", "what it held when its device stood at its peak"),
  bytes("peak_bytes", "Own peak"),
  bytes("allocated_bytes", "Total", "allocated in all"),
  plain("allocations", "Allocations"),
  plain("frees", "Frees"),
  { id: "category", title: "Category", width: "9rem", key: (site) => site.category, cell: (site) => categoryTag(site.category) },
  word("library", "Library", "11rem"),
  word("phase", "Phase", "6rem"),
  word("level", "Level", "5rem"),
  word("kind", "Kind", "6rem"),
  { id: "device", title: "Device", width: "6rem", key: (site) => site.device, cell: (site) => deviceName(site.device) },
  { id: "first_s", title: "First", width: "6rem", numeric: true, key: (site) => site.first_s, cell: (site) => time(site.first_s) },
  { id: "last_s", title: "Last", width: "6rem", numeric: true, key: (site) => site.last_s, cell: (site) => time(site.last_s) },
];

export function sites(run) {
  const note = h("p", { class: "note", role: "status" });
  const table = new BigTable({ label: "Allocation sites", columns: siteColumns(run), sort: "live_bytes", height: 640,
    onchoose: (site) => showSite(site, run) });
  const filters = new Filters(run, { fields: ["device", "kind", "library", "category", "verdict"], onchange: draw });
  function draw() {
    const rows = filters.sites;
    const live = rows.reduce((sum, site) => sum + site.live_bytes, 0);
    note.replaceChildren(rowsNote(rows.length, run.sites.length, "sites"), ", ", size(live), " live",
      run.levels.length > 1 && !filters.level ? " (blocks lie in the driver's memory and are counted beside it)" : "");
    table.update(rows);
  }
  draw();
  return [h("h1", {}, "Allocation sites"),
    h("p", { class: "lead" }, "A site is one stack, kind of memory, device and level. A click on a row shows its stack."),
    filters.element, note, table.element];
}
