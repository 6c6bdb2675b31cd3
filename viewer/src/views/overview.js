// What was used, what it is made of, what is wrong and what to do.

import { h, size, number, table } from "../dom.js";
import { ABSENT, deviceName, known, percent, plural, share, time, size as sizeText } from "../format.js";
import { holdersPart } from "../holders.js";
import { frameName } from "../model.js";
import { momentName, momentOf, setMoment } from "../moment.js";
import { colorOf, ledgerColors } from "../palette.js";
import { siteButton, stackList, swatch } from "../site.js";
import { stackedBar } from "../bars.js";
import { StackChart, sourceNote } from "../stack/chart.js";
import { rangeTitle } from "../ranges.js";
import { state } from "../state.js";
import { stackOf, stackOptions } from "./timeline.js";

const SEVERITY = { error: ["✕", "error"], warning: ["!", "warning"], note: ["i", "note"] };

function tile(title, value, detail) {
  return h("div", { class: "tile" }, h("dt", {}, title), h("dd", {}, h("span", { class: "tile-value" }, value),
    detail ? h("span", { class: "tile-detail" }, detail) : null));
}

/* PyTorch's own figures, as torch.cuda.memory_stats() names them. */
function torchTiles(row) {
  const where = deviceName(row.device);
  const active = row.active_bytes ?? row.allocated_bytes;
  const inactive = known(row.reserved_bytes) && known(active) ? row.reserved_bytes - active : null;
  return [tile(`PyTorch reserved, peak, ${where}`, size(row.reserved_peak_bytes), ["at the end ", size(row.reserved_bytes)]),
    tile(`PyTorch allocated, peak, ${where}`, size(row.allocated_peak_bytes), ["at the end ", size(row.allocated_bytes)]),
    tile(`PyTorch inactive at the end, ${where}`, size(inactive),
      ["releasable ", size(row.releasable_bytes), ", inactive split ", size(row.inactive_split_bytes)])];
}

function tiles(run) {
  const { document } = run;
  const list = document.torch.flatMap(torchTiles);
  list.push(...document.totals.flatMap((total) => {
    const limit = document.devices.find((device) => device.index === total.device);
    const capacity = limit?.capacity_bytes ?? limit?.total_bytes;
    return [tile(`${document.torch.length ? "driver's " : ""}peak, ${deviceName(total.device)}`, size(total.peak_bytes),
      [`at ${time(total.peak_at_s)}`, known(capacity) ? [", ", percent(total.utilization_percent), " of ", size(capacity)] : null]),
    tile(`at the end, ${deviceName(total.device)}`, size(total.current_bytes), plural(total.current_count, "allocation"))];
  }));
  list.push(tile("not freed at exit", size(document.leaks?.exit_bytes),
    known(document.leaks?.exit_count) ? plural(document.leaks.exit_count, "allocation") : "the run did not end by itself"));
  list.push(tile("out of memory", number(document.ooms.length + (document.retries?.ooms_not_kept ?? 0)),
    document.retries ? plural(document.retries.attempts, "retry", "retries") : "retries were not recorded"));
  return h("dl", { class: "tiles" }, list);
}

/* The frames of a site that somebody looks for, from its own on. */
function shortStack(site) {
  const kept = site.stack.map((_, i) => i).filter((i) => i >= site.own && (site.plumbing[i] !== "1" || i === site.own)).slice(0, 6);
  return [kept.map((i) => site.stack[i]), { own: kept.indexOf(site.own) }];
}

/* The moment that the first finding is about, and its chart. */
function chart(run) {
  const options = stackOptions(run);
  const stack = stackOf(run, options);
  const { finding, site } = run.opening;
  const legend = h("ul", { class: "map-legend" });
  const pinned = h("p", { class: "note", role: "status" });
  const picture = new StackChart({ run, height: 250, still: true, label: "Live memory in bands over time. Left and right arrows pin a moment, which every view then shows.",
    onmoment: (moment) => {
      setMoment(run, moment);
      show();
    } });
  function show() {
    const moment = momentOf(run);
    const about = finding && moment === run.opening.moment ? `, which the first finding is about: ${finding.title}` : "";
    pinned.replaceChildren(`Pinned: ${momentName(moment)}${about}. `, h("a", { href: state.address({ view: "timeline" }) }, "Timeline"), ", ",
      h("a", { href: state.address({ view: "flame" }) }, "flame graph"), ", ", h("a", { href: state.address({ view: "map" }) }, "map"), " and ",
      h("a", { href: state.address({ view: "sites" }) }, "sites"), " show this moment.");
  }
  queueMicrotask(() => {
    picture.update({ ...stack, axis: "time", zoom: null, moment: momentOf(run) });
    show();
  });
  const { bands } = stack;
  legend.append(...bands.names.map((name, i) => h("li", {}, swatch(bands.colors[i]), bands.sites[i] ? siteButton(bands.sites[i], run) : name)).reverse().slice(0, 12));
  return h("section", { "aria-labelledby": "memory" },
    h("h2", { id: "memory" }, `Live memory, ${deviceName(options.device)}, ${{ torch: "PyTorch's blocks", driver: "driver's allocations", custom: "program's own pools" }[options.level]}`),
    run.sites.length ? [pinned, picture.element, legend, h("p", { class: "note" }, sourceNote(run, stack.lane)),
      site ? h("details", { class: "event", open: true }, h("summary", {}, "The finding's site: ", siteButton(site, run)), stackList(...shortStack(site))) : null]
      : h("p", { class: "note" }, "No allocation was recorded."));
}

/* Findings of one id and one function are one entry: a leak that many call paths lead to. */
function entriesOf(run) {
  const entries = new Map();
  run.document.findings.forEach((one, i) => {
    const site = run.byId.get(one.site);
    const frame = site?.stack[Math.max(0, site.own)];
    const key = one.id.startsWith("leak.") && frame ? `${one.id} ${one.device} ${site.kind} ${frameName(frame)}` : i;
    if (!entries.has(key)) entries.set(key, []);
    entries.get(key).push(one);
  });
  return [...entries.values()];
}

/* The title of several findings: their sum, and of their places what all have in common. */
function entryTitle([first, ...more], place) {
  if (!more.length) return first.title;
  const bytes = [first, ...more].reduce((sum, one) => sum + (one.bytes ?? 0), 0);
  return `${first.title.replace(sizeText(first.bytes), sizeText(bytes)).replace(place, place.split(" from ")[0])}, by ${plural(more.length + 1, "call path")}`;
}

function finding(all, run) {
  const [one, ...more] = all;
  const [icon, word] = SEVERITY[one.severity];
  const places = all.map((each) => [each, run.byId.get(each.site)]).filter(([, site]) => site);
  return h("li", { class: `finding ${one.severity}` },
    h("span", { class: "icon", "aria-hidden": "true" }, icon),
    h("div", {},
      h("h3", {}, h("span", { class: "visually-hidden" }, `${word}: `), entryTitle(all, places[0]?.[1].place ?? "")),
      h("p", { class: "evidence" }, more.length ? `the largest: ${one.evidence}` : one.evidence, " ", h("code", { class: "finding-id" }, one.id)),
      one.advice.length ? h("ul", { class: "advice" }, one.advice.map((line) => h("li", {}, line))) : null,
      more.length ? h("details", {}, h("summary", {}, plural(all.length, "call path")),
        h("ul", { class: "plain-list" }, places.map(([each, site]) => h("li", {}, size(each.bytes), " ", siteButton(site, run)))))
        : places.map(([, site]) => h("p", {}, "Site: ", siteButton(site, run)))));
}

function findings(run) {
  const list = entriesOf(run);
  return h("section", { "aria-labelledby": "findings" }, h("h2", { id: "findings" }, "Findings"),
    list.length ? h("ol", { class: "findings" }, list.map((all) => finding(all, run)))
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
      "; other processes ", size(one.others_bytes), one.phase ? `; phase ${one.phase}` : "",
      one.ranges?.length ? `; in the range ${rangeTitle(one.ranges.join(" / "))}` : "", one.injected ? "; injected" : ""),
    one.advice.length ? h("ul", { class: "advice" }, one.advice.map((line) => h("li", {}, line))) : null,
    holders.length ? table("Who held the memory", [
      { title: "site", cell: (row) => (row.known ? siteButton(row.known, run) : row.site ?? "unknown") },
      ...(new Set(holders.map((row) => row.known?.level)).size > 1 ? [{ title: "level", cell: (row) => row.known?.level ?? ABSENT }] : []),
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

/** `job`: what the files of the page have in common, where there are several. */
export function overview(run, job) {
  return [h("h1", {}, run.title), processLine(run), tiles(run), chart(run), findings(run), job, holdersPart(run, siteButton), ledger(run), makeUp(run),
    usage(run), torch(run), ooms(run), errors(run), phases(run), warnings(run)];
}
