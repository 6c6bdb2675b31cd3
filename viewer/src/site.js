// A site in full, in a dialog: its figures, its stack, how it went over the run.

import { h, size, number } from "./dom.js";
import { ABSENT, deviceName, known, time, plural, size as sizeText } from "./format.js";
import { framePlace, frameName } from "./model.js";
import { chainsOf } from "./holders.js";
import { colorOf } from "./palette.js";
import { state } from "./state.js";

export const VERDICTS = {
  grow: "keeps growing",
  held: "held: bounded, never freed",
  cached: "kept by a pool or framework for reuse",
  released: "nothing of it is live",
};

export function verdictTag(verdict) {
  return h("span", { class: `tag verdict-${verdict}`, title: VERDICTS[verdict] }, verdict);
}

export function swatch(color) {
  return h("span", { class: "swatch", "aria-hidden": "true", style: { background: color } });
}

export const categoryTag = (category) =>
  h("span", { class: "category" }, swatch(colorOf(category)), category ?? "other");

/** A stack as a list, innermost first; frames nobody looks for are dimmed. */
export function stackList(stack, { own = -1, plumbing = "" } = {}) {
  if (!stack.length) return h("p", { class: "note" }, "No stack was recorded.");
  return h("ol", { class: "stack" }, stack.map((frame, i) =>
    h("li", { class: [i === own ? "own" : "", plumbing[i] === "1" ? "plumbing" : ""].join(" ").trim() || null },
      h("span", { class: `frame-kind ${frame.kind}` }, frame.kind === "python" ? "py" : "c"),
      h("span", { class: "frame-text" },
        h("span", { class: "frame-function" }, frame.function ?? frameName(frame)),
        h("span", { class: "frame-place" }, framePlace(frame))))));
}

function windowBars(site, end) {
  const windows = site.windows ?? [];
  if (windows.length < 2) return null;
  const most = Math.max(...windows.map((window) => window.max_bytes), 1);
  const bar = (window, i) => {
    const until = windows[i + 1]?.start_s ?? end;
    const text = `${time(window.start_s)} to ${time(until)}: ${sizeText(window.min_bytes)} to ${sizeText(window.max_bytes)}, at its end ${sizeText(window.last_bytes)}`;
    const style = { height: `${Math.max(1, (100 * window.max_bytes) / most)}%` };
    return h("li", { title: text }, h("span", { class: "bar", style }), h("span", { class: "visually-hidden" }, text));
  };
  return [h("h3", {}, "Live bytes over the run"), h("ol", { class: "window-bars" }, windows.map(bar)),
    h("p", { class: "note" }, `${plural(windows.length, "window")}; the highest ${sizeText(most)}`)];
}

function facts(site) {
  const rows = [
    ["live at the end", [size(site.live_bytes), ` in ${plural(site.live_count, "allocation")}`]],
    ["at the end of the work", known(site.work_bytes) && site.work_bytes !== site.live_bytes ? [size(site.work_bytes), ` in ${plural(site.work_count, "allocation")}`] : null],
    ["at the device's peak", size(site.bytes_at_peak)],
    ["its own peak", size(site.peak_bytes)],
    ["allocated in all", [size(site.allocated_bytes), ` in ${plural(site.allocations, "allocation")}`]],
    ["frees", number(site.frees)],
    ["first, last", `${time(site.first_s)}, ${time(site.last_s)}`],
    ["memory", `${site.kind}, ${deviceName(site.device)}, ${site.level} level`],
    ["called", site.function],
    ["library", site.library],
    ["category", categoryTag(site.category)],
    ["phase", site.phase],
  ];
  if (site.collected_bytes) rows.push(["freed by Python's collector", [size(site.collected_bytes), " that only cycles kept"]]);
  if (site.failures) rows.push(["failed allocations", number(site.failures)]);
  if (site.failed_frees) rows.push(["failed frees", number(site.failed_frees)]);
  return h("dl", { class: "facts" }, rows.filter(([, value]) => value !== null && value !== undefined)
    .map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

/** The column for a table of sites of several levels; none where all are of one. */
export const levelColumn = (runs, siteOf = (row) => row) => (new Set(runs.flatMap((run) => run.levels)).size < 2 ? []
  : [{ id: "level", title: "Level", width: "5.5rem", help: "who handed the memory out: blocks of PyTorch lie in the driver's memory",
    key: (row) => siteOf(row)?.level, cell: (row) => siteOf(row)?.level ?? ABSENT }]);

let dialog;

/** Closes the dialog without a trace in the address. */
export function closeSite() {
  dialog?.remove();
  dialog = undefined;
}

/** Opens a site in a dialog, which the address keeps. */
export function showSite(site, run) {
  closeSite();
  const close = h("button", { type: "button", class: "close", "aria-label": "Close", onclick: () => dialog.close() }, "✕");
  const mine = h("dialog", { class: "site", "aria-labelledby": "site-title" },
    h("header", {}, h("h2", { id: "site-title" }, site.place), close),
    h("p", { class: "site-line" }, verdictTag(site.verdict), " ", site.why ?? "", h("span", { class: "site-id" }, `site ${site.id}`)),
    facts(site), windowBars(site, run.end), chainsOf(run, site),
    h("h3", {}, "Stack, innermost first"), stackList(site.stack, site),
    site.stack_truncated ? h("p", { class: "note" }, "The stack was deeper than what was kept (GPUMEMTRACE_DEPTH).") : null);
  const before = document.activeElement;
  mine.addEventListener("close", () => {
    closeSite();
    state.put("site", "");
    if (before?.isConnected) before.focus();
  });
  mine.addEventListener("click", (event) => {
    if (event.target === mine) mine.close();
  });
  dialog = mine;
  document.body.append(mine);
  mine.showModal();
  state.put("site", site.id);
}

/** A button with the site's place that opens it. */
export function siteButton(site, run) {
  return h("button", { type: "button", class: "link place", title: site.place, onclick: () => showSite(site, run) }, site.place);
}
