// What was used, what it is made of, what is wrong and what to do.

import { h, size, number, table } from "../dom.js";
import { deviceName, known, percent, plural, share, time, size as sizeText } from "../format.js";
import { colorOf, ledgerColors } from "../palette.js";
import { siteButton, stackList, swatch } from "../site.js";
import { stackedBar } from "../bars.js";

const SEVERITY = { error: ["✕", "error"], warning: ["!", "warning"], note: ["i", "note"] };

function tile(title, value, detail) {
  return h("div", { class: "tile" }, h("dt", {}, title), h("dd", {}, h("span", { class: "tile-value" }, value),
    detail ? h("span", { class: "tile-detail" }, detail) : null));
}

function tiles(run) {
  const { document } = run;
  const list = document.totals.map((total) => {
    const limit = document.devices.find((device) => device.index === total.device);
    const capacity = limit?.capacity_bytes ?? limit?.total_bytes;
    return [tile(`peak, ${deviceName(total.device)}`, size(total.peak_bytes),
      [`at ${time(total.peak_at_s)}`, known(capacity) ? [", ", percent(total.utilization_percent), " of ", size(capacity)] : null]),
    tile(`at the end, ${deviceName(total.device)}`, size(total.current_bytes), plural(total.current_count, "allocation"))];
  });
  list.push(tile("not freed at exit", known(document.leaks?.exit_bytes) ? size(document.leaks.exit_bytes) : "–",
    known(document.leaks?.exit_count) ? plural(document.leaks.exit_count, "allocation") : "the run did not end by itself"));
  list.push(tile("out of memory", number(document.ooms.length + (document.retries?.ooms_not_kept ?? 0)), plural(document.retries?.attempts ?? 0, "retry", "retries")));
  return h("dl", { class: "tiles" }, list);
}

function finding(one, run) {
  const [icon, word] = SEVERITY[one.severity];
  const site = run.byId.get(one.site);
  return h("li", { class: `finding ${one.severity}` },
    h("span", { class: "icon", "aria-hidden": "true" }, icon),
    h("div", {},
      h("h3", {}, h("span", { class: "visually-hidden" }, `${word}: `), one.title),
      h("p", { class: "evidence" }, one.evidence, " ", h("code", { class: "finding-id" }, one.id)),
      one.advice.length ? h("ul", { class: "advice" }, one.advice.map((line) => h("li", {}, line))) : null,
      site ? h("p", {}, "Site: ", siteButton(site, run)) : null));
}

function findings(run) {
  const list = run.document.findings;
  return h("section", { "aria-labelledby": "findings" }, h("h2", { id: "findings" }, "Findings"),
    list.length ? h("ol", { class: "findings" }, list.map((one) => finding(one, run)))
      : h("p", { class: "note" }, "Nothing stands out."));
}

function ledger(run) {
  const lists = run.document.ledger.map((one) => {
    const all = [...one.rows, { what: "unexplained", library: null, bytes: one.unexplained_bytes }];
    const colors = ledgerColors(all);
    const rows = all.map((row, i) => ({ name: row.library ? `${row.what}: ${row.library}` : row.what, bytes: row.bytes, color: colors[i] }));
    const source = one.source === "nvml-process" ? "NVML's figure for the process" : "the device's used bytes, less those before the run";
    return h("div", { class: "ledger" },
      h("p", {}, `${deviceName(one.device)}: the driver said `, size(one.process_used_bytes), ` at ${time(one.time_s)} (${source})`),
      stackedBar(rows, one.process_used_bytes, `Ledger of ${deviceName(one.device)}`));
  });
  return h("section", { "aria-labelledby": "ledger" }, h("h2", { id: "ledger" }, "Ledger"),
    lists.length ? lists : h("p", { class: "note" },
      "The driver's own figure for this process was not sampled, so there is nothing to hold the tracked bytes against."));
}

function makeUp(run) {
  const groups = new Map();
  for (const row of run.document.categories) {
    const key = `${row.device}|${row.level}`;
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(row);
  }
  const bars = [...groups.values()].map((rows) => {
    const { device, level } = rows[0];
    const total = rows.reduce((sum, row) => sum + row.bytes_at_peak, 0);
    const label = `${deviceName(device)}, ${level} level, at its peak`;
    return h("div", { class: "ledger" }, h("p", {}, `${label}: `, size(total)),
      stackedBar(rows.map((row) => ({ name: row.category, bytes: row.bytes_at_peak, color: colorOf(row.category) })), total, label));
  });
  return h("section", { "aria-labelledby": "makeup" }, h("h2", { id: "makeup" }, "What the peak is made of"),
    bars.length ? bars : h("p", { class: "note" }, "No memory was allocated."));
}

function usage(run) {
  const bytes = (title, key, help) => ({ title, numeric: true, help, cell: (row) => size(row[key]) });
  const plain = (title, key, help) => ({ title, numeric: true, help, cell: (row) => number(row[key]) });
  return h("section", { "aria-labelledby": "usage" }, h("h2", { id: "usage" }, "Usage"),
    table("Usage by device and kind of memory", [
      { title: "where", cell: (row) => deviceName(row.device) },
      { title: "kind", cell: (row) => [row.kind, row.owned ? null : h("span", { class: "muted" }, " not owned")] },
      bytes("current", "current_bytes", "live now, as asked for"),
      bytes("peak", "peak_bytes"),
      bytes("total allocated", "allocated_bytes"),
      bytes("total freed", "freed_bytes"),
      plain("allocations", "allocations"), plain("frees", "frees"), plain("failed", "failures", "allocation calls that failed"),
    ], run.document.usage, { hideCaption: true }));
}

function torch(run) {
  if (!run.document.torch.length) return null;
  const bytes = (title, key, help) => ({ title, numeric: true, help, cell: (row) => size(row[key]) });
  return h("section", { "aria-labelledby": "torch" }, h("h2", { id: "torch" }, "PyTorch's allocator"),
    table("PyTorch's allocator by device", [
      { title: "where", cell: (row) => `${deviceName(row.device)} (${row.allocator})` },
      bytes("allocated", "allocated_bytes"), bytes("its peak", "allocated_peak_bytes"),
      bytes("reserved", "reserved_bytes"), bytes("its peak", "reserved_peak_bytes"),
      bytes("releasable", "releasable_bytes", "in segments without a block: torch.cuda.empty_cache() gives them back"),
      bytes("inactive split", "inactive_split_bytes", "free between blocks of segments that cannot be given back"),
      { title: "retries", numeric: true, cell: (row) => number(row.alloc_retries) },
      { title: "OOMs", numeric: true, cell: (row) => number(row.ooms) },
    ], run.document.torch, { hideCaption: true }));
}

function phases(run) {
  const rows = run.document.phases;
  if (rows.length < 2) return null;
  return h("section", { "aria-labelledby": "phases" }, h("h2", { id: "phases" }, "Phases"),
    table("Phases", [
      { title: "phase", cell: (row) => row.phase },
      { title: "where", cell: (row) => deviceName(row.device) },
      { title: "peak", numeric: true, help: "highest total right after one of its allocations", cell: (row) => size(row.peak_bytes) },
      { title: "retained", numeric: true, help: "live at the end", cell: (row) => size(row.retained_bytes) },
    ], rows, { hideCaption: true }));
}

function oom(one, i, run) {
  const holders = one.top_sites.map((top) => ({ ...top, known: run.byId.get(top.site) }));
  return h("details", { class: "event" },
    h("summary", {}, `${i + 1}. ${time(one.time_s)}: ${one.api ?? "the framework"} asked for `, size(one.requested_bytes),
      ` on ${deviceName(one.device)} `, h("span", { class: "tag verdict-grow" }, one.verdict)),
    h("p", {}, "Free ", size(one.free_bytes), " of ", size(one.total_bytes), "; tracked ", size(one.tracked_bytes),
      "; other processes ", size(one.others_bytes), one.phase ? `; phase ${one.phase}` : "", one.injected ? "; injected" : ""),
    one.advice.length ? h("ul", { class: "advice" }, one.advice.map((line) => h("li", {}, line))) : null,
    holders.length ? table("Who held the memory", [
      { title: "site", cell: (row) => (row.known ? siteButton(row.known, run) : row.site ?? "unknown") },
      { title: "bytes", numeric: true, cell: (row) => size(row.bytes) },
      { title: "share", numeric: true, cell: (row) => share(row.bytes, one.tracked_bytes) },
      { title: "allocations", numeric: true, cell: (row) => number(row.count) },
    ], holders) : null,
    h("h3", {}, "Stack of the request"), stackList(one.stack));
}

function ooms(run) {
  if (!run.document.ooms.length) return null;
  return h("section", { "aria-labelledby": "ooms" }, h("h2", { id: "ooms" }, "Out of memory"),
    run.document.ooms.map((one, i) => oom(one, i, run)));
}

function errors(run) {
  if (!run.document.errors.length) return null;
  return h("section", { "aria-labelledby": "errors" }, h("h2", { id: "errors" }, "Bad frees"),
    run.document.errors.map((one) => h("details", { class: "event" },
      h("summary", {}, h("span", { class: "tag verdict-grow" }, one.type), ` ${one.api ?? ""} of ${one.pointer}, ${plural(one.count, "time")} `),
      h("h3", {}, "Stack of the call"), stackList(one.stack),
      one.first_free_stack.length ? [h("h3", {}, "Stack of the first free"), stackList(one.first_free_stack)] : null)));
}

function warnings(run) {
  const list = run.document.file?.warnings ?? [];
  if (!list.length) return null;
  return h("section", { "aria-labelledby": "warnings" }, h("h2", { id: "warnings" }, "About the file"),
    h("ul", { class: "advice" }, list.map((line) => h("li", {}, line))));
}

function processLine(run) {
  const { process, devices, tracer } = run.document;
  const words = [
    process?.host ? `on ${process.host}` : null,
    process?.started_at ? `started ${process.started_at.replace("T", " ").replace(/\.\d+Z/, " UTC")}` : null,
    `recorded for ${time(process?.duration_s)}`,
    { exit: "ended by itself", killed: "was killed", running: "still running" }[process?.end],
    ...devices.map((device) => `${deviceName(device.index)}: ${device.name ?? "unknown"}${known(device.total_bytes) ? `, ${sizeText(device.total_bytes)}` : ""}`),
    tracer?.backend ? `recorded by ${tracer.backend}` : null,
  ];
  return h("p", { class: "process" }, words.filter(Boolean).join(" · "));
}

export function overview(run) {
  return [h("h1", {}, run.title), processLine(run), tiles(run), findings(run), ledger(run), makeUp(run), usage(run),
    torch(run), ooms(run), errors(run), phases(run), warnings(run)];
}
