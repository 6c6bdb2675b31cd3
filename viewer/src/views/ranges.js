// Named ranges: steps, passes, layers, requests. Their peaks, what they retained, and when the worst were.

import { h, number, size } from "../dom.js";
import { deviceName, plural, time } from "../format.js";
import { rangeRows, rangeSpans, rangeTitle } from "../ranges.js";
import { siteButton } from "../site.js";
import { state } from "../state.js";
import { BigTable } from "../table.js";

/* The address of the timeline that shows an instance with as much around it. */
function timelineOf(index, { from, to, instance }, run) {
  const around = Math.max(to - from, run.end * 1e-6) / 2;
  return state.address({ view: "timeline", range: index, at: instance.peak_at_s, zoom: `${Math.max(0, from - around)},${Math.min(run.end, to + around)}` });
}

function siteTable(list, run) {
  const rows = list.map((one) => ({ ...one, known: run.byId.get(one.site) })).filter((one) => one.known);
  if (!rows.length) return null;
  return h("ul", { class: "plain-list" }, rows.map((one) => h("li", {}, size(one.bytes), ` in ${plural(one.count, "block")} `, siteButton(one.known, run))));
}

function spanPart(row, span, run) {
  const { instance } = span;
  return h("section", {}, h("h3", {}, `${span.what[0].toUpperCase()}${span.what.slice(1)}: ${span.name}`),
    h("p", {}, "peak ", size(instance.peak_bytes), ` at ${time(instance.peak_at_s)}, `, size(instance.start_bytes), " at its start, retained ",
      size(instance.retained_bytes, { signed: true }), ` · ${time(span.from)} to ${time(span.to)}${instance.thread === null ? "" : `, thread ${instance.thread}`} · `,
      h("a", { href: timelineOf(row.index, span, run) }, "show in the timeline")),
    instance.sites?.length ? [h("p", {}, "Live of what was allocated meanwhile:"), siteTable(instance.sites, run)] : null);
}

function details(row, run) {
  if (!row) return [h("p", { class: "note" }, "Choose a range to see its worst times and what is live of it.")];
  return [h("h2", {}, rangeTitle(row.range.path)), rangeSpans(row.range).map((span) => spanPart(row, span, run)),
    row.range.work_bytes ? h("section", {}, h("h3", {}, "Allocated in it by its own thread and live at the end of the work: ", size(row.range.work_bytes)),
      siteTable(row.range.sites, run)) : null].flat();
}

const bytes = (id, title, read, help, signed = false) => ({ id, title, help, numeric: true, width: "8rem", key: (row) => read(row.range),
  cell: (row) => size(read(row.range), { signed }) });

function columnsOf(rows, choose) {
  const devices = new Set(rows.map((row) => row.range.device));
  return [
    { id: "range", title: "Range", width: "24rem", help: "in order, each before the ranges in it", key: (row) => row.order,
      cell: (row) => h("button", { type: "button", class: "link", style: { marginLeft: `${1.2 * Math.min(row.depth, 12)}rem` }, onclick: () => choose(row) }, row.title) },
    ...(devices.size > 1 ? [{ id: "device", title: "Device", width: "6rem", key: (row) => row.range.device, cell: (row) => deviceName(row.range.device) }] : []),
    { id: "times", title: "Times", numeric: true, width: "6rem", key: (row) => row.range.closed, cell: (row) => number(row.range.closed) },
    bytes("lowest", "Lowest peak", (range) => range.lowest_peak_bytes),
    bytes("median", "Median peak", (range) => range.median_peak_bytes),
    bytes("highest", "Highest peak", (range) => range.peak_bytes, "the most bytes in use while one was open"),
    bytes("retained", "Retained", (range) => range.retained_bytes, "in use at the end less what was in use at the start, of all times together", true),
    bytes("live", "Live at end", (range) => range.work_bytes, "allocated in it by its own thread and live at the end of the work"),
  ];
}

export function ranges(run) {
  const rows = rangeRows(run.document);
  const head = h("h1", {}, "Ranges");
  if (!rows.length)
    return [head, h("p", { class: "note" }, "No range was closed. Ranges are NVTX's (torch.cuda.nvtx.range, torch.autograd.profiler.emit_nvtx), gpumemtrace_range_push of the public header, and the stretches between marks.")];
  const box = h("section", { class: "chosen", "aria-live": "polite" });
  const choose = (row) => {
    state.put("range", row?.index);
    box.replaceChildren(...details(row, run).filter(Boolean));
  };
  const table = new BigTable({ label: "Ranges", columns: columnsOf(rows, choose), sort: "range", descending: false, height: 480, onchoose: choose });
  table.update(rows);
  choose(rows.find((row) => String(row.index) === state.get("range")) ?? null);
  return [head, h("p", { class: "lead" }, "Peaks are of the bytes in use while a range was open, of all threads; a step, request or layer whose name differs in numbers only is one row, \"step #\"."),
    table.element, box];
}
