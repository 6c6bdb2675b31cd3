// Every allocation site, sorted and filtered.

import { h, size, number } from "../dom.js";
import { ABSENT, deviceName, time } from "../format.js";
import { Filters } from "../filters.js";
import { makeUpAt, makeUpNote } from "../makeup.js";
import { liveAt, momentControl, momentOf } from "../moment.js";
import { categoryTag, levelColumn, showSite, siteButton, verdictTag } from "../site.js";
import { state } from "../state.js";
import { BigTable, rowsNote } from "../table.js";

const bytes = (id, title, help) => ({ id, title, help, numeric: true, key: (site) => site[id], cell: (site) => size(site[id]) });
const plain = (id, title, help) => ({ id, title, help, numeric: true, width: "6.5rem", key: (site) => site[id], cell: (site) => number(site[id]) });
const word = (id, title, width = "7rem") => ({ id, title, width, key: (site) => site[id], cell: (site) => site[id] ?? ABSENT });

/** The columns; `live` has the bytes and count of each site at the moment that is shown. */
const siteColumns = (run, live) => [
  { id: "place", title: "Site", width: "26rem", key: (site) => site.place, cell: (site) => siteButton(site, run) },
  ...levelColumn([run]),
  { id: "verdict", title: "Verdict", width: "6rem", key: (site) => site.verdict, cell: (site) => verdictTag(site.verdict) },
  { id: "live_bytes", title: "Live", help: "at the moment that is chosen above", numeric: true, key: (site) => live.get(site)?.high, cell: (site) => size(live.get(site)?.high) },
  { id: "live_count", title: "Live count", width: "6.5rem", numeric: true, key: (site) => live.get(site)?.count, cell: (site) => number(live.get(site)?.count) },
  bytes("bytes_at_peak", "At peak", "what it held when its device stood at its peak"),
  bytes("peak_bytes", "Own peak"),
  bytes("allocated_bytes", "Total", "allocated in all"),
  plain("allocations", "Allocations"),
  plain("frees", "Frees"),
  { id: "category", title: "Category", width: "9rem", key: (site) => site.category, cell: (site) => categoryTag(site.category) },
  word("library", "Library", "11rem"),
  word("phase", "Phase", "6rem"),
  word("kind", "Kind", "6rem"),
  { id: "device", title: "Device", width: "6rem", key: (site) => site.device, cell: (site) => deviceName(site.device) },
  { id: "first_s", title: "First", width: "6rem", numeric: true, key: (site) => site.first_s, cell: (site) => time(site.first_s) },
  { id: "last_s", title: "Last", width: "6rem", numeric: true, key: (site) => site.last_s, cell: (site) => time(site.last_s) },
];

export function sites(run) {
  let moment = momentOf(run);
  const live = new Map();
  const note = h("p", { class: "note", role: "status" });
  const source = h("p", { class: "note" });
  const columns = siteColumns(run, live);
  const sort = columns.some((column) => column.id === state.get("sort")) ? state.get("sort") : "live_bytes";
  const table = new BigTable({ label: "Allocation sites", columns, sort, descending: state.get("ascending") !== "true", height: 640,
    onchoose: (site) => showSite(site, run), rowClass: (site) => (site === run.opening.site ? "about" : null),
    onsort: (id, descending) => {
      state.put("sort", id, "live_bytes");
      state.put("ascending", !descending, false);
    } });
  const filters = new Filters(run, { fields: ["device", "kind", "library", "category", "verdict"], onchange: draw });
  function draw() {
    const made = makeUpAt(run, run.sites, moment);
    live.clear();
    for (const row of made.rows) live.set(row.site, row);
    const rows = filters.sites;
    note.replaceChildren(rowsNote(rows.length, run.sites.length, "sites"), ", ", size(rows.reduce((sum, site) => sum + (live.get(site)?.high ?? 0), 0)), ` ${liveAt(moment)}`,
      run.levels.length > 1 && !filters.level ? " (blocks lie in the driver's memory and are counted beside it)" : "");
    source.textContent = made.how === "end" ? "" : makeUpNote(made, run, moment);
    table.update(rows);
  }
  draw();
  return [h("h1", {}, "Allocation sites"),
    h("p", { class: "lead" }, "A site is one stack, kind of memory, device and level. A click on a row shows its stack."),
    h("div", { class: "controls" }, momentControl(run, (chosen) => {
      moment = chosen;
      draw();
    })), filters.element, note, source, table.element];
}
