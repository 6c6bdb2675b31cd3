// Live memory over time, in bands; what happened on it; what memory was made of at a moment.

import { field, h, select, size, checkbox } from "../dom.js";
import { TimeChart } from "../chart.js";
import { ABSENT, deviceName, known, plural, share, time } from "../format.js";
import { upper } from "../history.js";
import { exactFrom, groupRows, makeUpAt, makeUpNote } from "../makeup.js";
import { momentControl, momentName, momentOf, setMoment } from "../moment.js";
import { seriesStyle } from "../palette.js";
import { rangeSpans, rangeTitle } from "../ranges.js";
import { siteButton, swatch } from "../site.js";
import { GROUPS, bandsOf } from "../stack/bands.js";
import { StackChart, sourceNote } from "../stack/chart.js";
import { state } from "../state.js";
import { BigTable } from "../table.js";

const SHOWN = 16;

export function eventsOf(run, device) {
  const { document, history } = run;
  const mine = (one) => device === null || one.device === device;
  const failures = (history?.failures.time_s ?? []).map((moment, i) => ({ time: moment, kind: "failure", color: "--error",
    label: "failed allocation", bytes: history.failures.bytes[i], site: run.sites[history.failures.site[i]] }));
  return [
    ...document.marks.map((mark) => ({ time: mark.time_s, kind: "mark", color: "--muted", label: mark.name ?? "mark", bytes: mark.current_bytes })),
    ...document.ooms.filter(mine).map((oom) => ({ time: oom.time_s, kind: "oom", color: "--error", label: "OOM", bytes: oom.requested_bytes })),
    ...failures.filter((failure) => !failure.site || mine(failure.site)),
  ].sort((a, b) => a.time - b.time);
}

/** A line's highest, lowest and last bytes in the stretch that holds a moment. */
export function valueAt(line, moment) {
  const i = Math.min(line.max.length - 1, Math.floor((moment - line.start_s) / line.width_s));
  return i < 0 ? null : { min: line.min[i], max: line.max[i], last: line.last[i] };
}

const WHOLES = { driver: "tracked", torch: "torch_allocated", custom: "custom" };

const stacks = new WeakMap();

/** What a stacked chart of a level and device is drawn from; made once. */
export function stackOf(run, options) {
  const key = `${options.level} ${options.device} ${options.by}`;
  if (!stacks.has(run)) stacks.set(run, new Map());
  const made = stacks.get(run);
  if (!made.has(key)) made.set(key, makeStack(run, options));
  return made.get(key);
}

function makeStack(run, { level, device, by }) {
  const sites = run.sites.filter((site) => site.level === level && site.device === device && run.owned(site));
  const lane = run.past?.lane(level, device, run.owned) ?? null;
  const used = lane && (lane.length || run.history.complete) ? lane : null;
  const series = level === "driver" && device === null ? "pinned" : WHOLES[level];
  const holes = run.document.fragmentation.find((row) => row.level === level && row.device === device);
  return { sites, lane: used, bands: bandsOf(run, { by: by === "segment" && !used ? "category" : by, sites, lane: used, focus: run.opening.site }),
    total: run.document.timeline.find((line) => line.series === series && line.device === device && line.max.length) ?? null,
    peakAt: level === "driver" ? run.total(device)?.peak_at_s : holes?.at_peak?.time_s, events: eventsOf(run, device) };
}

/** The level, device and bands that the address asks for. */
export function stackOptions(run) {
  const level = run.levels.includes(state.get("level")) ? state.get("level") : run.mainLevel;
  const devices = [...new Set(run.sites.filter((site) => site.level === level && run.owned(site)).map((site) => site.device))].sort((a, b) => (a ?? 1e9) - (b ?? 1e9));
  const asked = state.get("device") === "null" ? null : Number(state.get("device", "NaN"));
  return { level, devices, device: devices.includes(asked) ? asked : devices[0] ?? 0, by: GROUPS[state.get("by")] ? state.get("by") : run.opening.by };
}

/* The make-up of a moment by the segments in which blocks lie: {name, high, band} of each. */
function segmentRows(run, { lane, bands }, moment) {
  const values = new Float64Array(bands.count);
  const until = moment === "peak" ? lane.peak + 1 : moment === "end" ? lane.length
    : moment === "work" ? upper(lane.at, run.past.workEnd - 1) : lane.until(moment);
  for (let i = 0; i < until; i++) values[bands.of[i]] += lane.history.bytes[lane.at[i]];
  return bands.names.map((name, band) => ({ name, low: values[band], high: values[band], band })).filter((row) => row.high > 0).sort((a, b) => b.high - a.high);
}

class MakeUp {
  constructor(run) {
    this.run = run;
    this.body = h("div", { "aria-live": "polite" });
    this.element = h("section", { class: "makeup", "aria-labelledby": "makeup-title" },
      h("h2", { id: "makeup-title" }, "Make-up at the chosen moment"), this.body);
  }

  rowsOf(stack, made, moment) {
    const { bands } = stack;
    if (bands.by === "segment")
      return moment === "peak" || moment === "end" || moment === "work" || moment >= exactFrom(this.run) ? segmentRows(this.run, stack, moment) : [];
    const read = GROUPS[bands.by][1];
    return groupRows(made.rows, read).map((row) => ({ ...row, band: bands.ofSite(row.site) }));
  }

  update(stack, { level, device }, moment) {
    const made = makeUpAt(this.run, stack.sites, moment);
    const rows = this.rowsOf(stack, made, moment);
    const ranged = made.how === "windows";
    const sum = rows.reduce((total, row) => total + row.high, 0);
    const rest = rows.slice(SHOWN).reduce((one, row) => ({ low: one.low + row.low, high: one.high + row.high }), { low: 0, high: 0 });
    const shown = rows.length > SHOWN ? [...rows.slice(0, SHOWN), { name: `${rows.length - SHOWN} more`, ...rest }] : rows;
    this.body.replaceChildren(
      h("p", {}, `${deviceName(device)}, ${level} level, at ${momentName(moment)}`, ranged || !rows.length ? "" : [": ", size(sum)]),
      h("p", { class: "note" }, makeUpNote(made, this.run, moment)),
      rows.length ? this.table(shown, stack.bands, ranged, sum) : h("p", { class: "note" }, made.how === "none" ? "" : "Nothing was live."));
  }

  table(rows, bands, ranged, sum) {
    const name = (row) => [bands.colors[row.band] ? swatch(bands.colors[row.band]) : null, bands.by === "site" && row.site ? siteButton(row.site, this.run) : row.name];
    const bar = (row) => h("span", { class: "inline-bar", style: { width: `${(100 * row.high) / (rows[0].high || 1)}%` } });
    return h("table", { class: "plain make-up-table" }, h("caption", { class: "visually-hidden" }, "Make-up"),
      h("thead", {}, h("tr", {}, [GROUPS[bands.by][0], ...(ranged ? ["lowest", "highest"] : ["bytes", "share"])]
        .map((title, i) => h("th", { scope: "col", class: i ? "num" : null }, title)), h("td", { "aria-hidden": "true" }))),
      h("tbody", {}, rows.map((row) => h("tr", {}, h("th", { scope: "row" }, name(row)),
        ranged ? [h("td", { class: "num" }, size(row.low)), h("td", { class: "num" }, size(row.high))]
          : [h("td", { class: "num" }, size(row.high)), h("td", { class: "num muted" }, share(row.high, sum))],
        h("td", { class: "bar-cell", "aria-hidden": "true" }, bar(row))))));
  }
}

function tableOf(lines, events, run) {
  const rows = lines.flatMap((line) => line.max.map((max, i) => ({ time: line.start_s + i * line.width_s, series: seriesStyle(line.series).name,
    min: line.min[i], max, last: line.last[i] })));
  const bytes = (id, title) => ({ id, title, numeric: true, width: "9rem", key: (row) => row[id], cell: (row) => size(row[id]) });
  const lineTable = new BigTable({ label: "Timeline", sort: "time", descending: false, height: 400, columns: [
    { id: "time", title: "From", numeric: true, width: "8rem", key: (row) => row.time, cell: (row) => time(row.time) },
    { id: "series", title: "Series", width: "16rem", key: (row) => row.series, cell: (row) => row.series },
    bytes("min", "Lowest"), bytes("max", "Highest"), bytes("last", "Last")] });
  const eventTable = new BigTable({ label: "What happened", sort: "time", descending: false, height: 300, columns: [
    { id: "time", title: "When", numeric: true, width: "8rem", key: (row) => row.time, cell: (row) => time(row.time) },
    { id: "label", title: "What", width: "14rem", key: (row) => row.label, cell: (row) => row.label },
    bytes("bytes", "Bytes"),
    { id: "site", title: "Site", width: "24rem", key: (row) => row.site?.place, cell: (row) => (row.site ? siteButton(row.site, run) : ABSENT) }] });
  lineTable.update(rows);
  eventTable.update(events);
  return [h("h2", {}, "What happened"), events.length ? eventTable.element : h("p", { class: "note" }, "No marks, no failed allocations."),
    h("h2", {}, "As a table"), lineTable.element];
}

function retryNote(run) {
  const { retries } = run.document;
  if (!retries?.attempts) return null;
  const seen = run.history?.failures.time_s.length ?? 0;
  return h("p", { class: "note" }, plural(retries.attempts, "retry", "retries"), `: ${retries.recovered} recovered, ${retries.exhausted} exhausted, `,
    `${time(retries.stall_s)} lost. `, seen ? "Failed allocations are the short red lines at the bottom." : "When they happened is no longer in the file.");
}

/* The document's lines: totals of every level, with what the driver says. */
class Totals {
  constructor(run, onmoment) {
    Object.assign(this, { run, hidden: new Set() });
    this.box = h("div", { class: "time-chart" });
    this.legend = h("div", { class: "series", role: "group", "aria-label": "Series" });
    this.tables = h("div", {});
    this.chart = new TimeChart(this.box, { onmoment, onhover: (moment) => this.readings(moment ?? this.chart?.moment ?? null) });
  }

  update(device) {
    this.lines = this.run.document.timeline.filter((line) => (line.device === device || line.device === null) && line.max.length);
    this.events = eventsOf(this.run, device);
    this.legend.replaceChildren(...this.lines.map((line) => {
      const { color, name } = seriesStyle(line.series);
      const toggle = checkbox(name, !this.hidden.has(line.series), (on) => {
        if (on) this.hidden.delete(line.series);
        else this.hidden.add(line.series);
        this.draw();
      });
      toggle.insertBefore(swatch(color), toggle.lastChild);
      return h("div", { class: "series-one" }, toggle, h("output", { data: { series: line.series } }));
    }));
    this.draw();
    this.tables.replaceChildren(...tableOf(this.lines, this.events, this.run));
  }

  draw() {
    this.chart.update(this.lines.filter((line) => !this.hidden.has(line.series)), this.events, this.run.end);
  }

  readings(moment) {
    for (const output of this.legend.querySelectorAll("output")) {
      const value = moment === null ? null : valueAt(this.lines.find((one) => one.series === output.dataset.series), moment);
      output.replaceChildren(value && known(value.max) ? (value.min === value.max ? size(value.max) : h("span", {}, size(value.min), " – ", size(value.max))) : "");
    }
  }

  setMoment(seconds) {
    this.chart.setMoment(seconds);
    this.readings(seconds);
  }
}

/* The worst times of the range that was chosen in the view of ranges. */
function chosenRange(run) {
  return run.document.ranges?.[state.get("range", "-1")] ?? null;
}

function chosenSpans(run) {
  const range = chosenRange(run);
  return range ? rangeSpans(range).map(({ what, name, from, to }) => ({ from, to, label: `${name}: ${what}` })) : [];
}

function rangeNote(run) {
  const range = chosenRange(run);
  if (!range) return [];
  return [`Marked: the range ${rangeTitle(range.path)}, `, rangeSpans(range).map(({ what, name, from, to }) => `${what} (${name}) ${time(from)} to ${time(to)}`).join("; "), ". ",
    h("a", { href: state.address({ view: "ranges" }) }, "All ranges"), ", ", h("a", { href: state.address({ range: null }) }, "remove the mark")];
}

const zoomText = (zoom) => (zoom ? zoom.map((one) => Number(one.toPrecision(12))).join(",") : "");

function zoomIn(text) {
  const zoom = text.split(",").map(Number);
  return zoom.length === 2 && zoom.every(Number.isFinite) && zoom[0] < zoom[1] ? zoom : null;
}

export function timeline(run) {
  let options = stackOptions(run);
  let stack;
  const makeUp = new MakeUp(run);
  const totals = new Totals(run, (moment) => choose(moment));
  const slider = h("input", { type: "range", min: 0, max: 10000, value: 10000, class: "moment", oninput: () => choose((run.end * slider.value) / 10000) });
  const chart = new StackChart({ run, height: 380, label: "Live memory in bands. Left and right arrows go from event to event, page up and down further; plus and minus zoom, Escape shows all. The make-up below holds the figures.",
    onmoment: (moment) => choose(moment), onzoom: (zoom) => {
      state.put("zoom", zoomText(zoom));
      showRange();
    } });
  const controls = h("div", { class: "controls", role: "group", "aria-label": "What is shown" });
  const moments = h("div", { class: "moment-control" });
  const note = h("p", { class: "note" });
  const spanNote = h("p", { class: "note" });
  const button = (text, action) => h("button", { type: "button", onclick: action }, text);

  function choose(moment) {
    setMoment(run, moment);
    moments.replaceChildren(momentControl(run, () => show()));
    show();
  }

  function show() {
    const moment = momentOf(run);
    const place = chart.placeOf(moment);
    const seconds = typeof moment === "number" ? moment : chart.axis === "time" ? place : stack.lane?.times[place];
    chart.moment = moment;
    chart.place(chart.pin, place);
    makeUp.update(stack, options, moment);
    totals.setMoment(seconds ?? run.end);
    slider.value = Math.round((10000 * (seconds ?? run.end)) / (run.end || 1));
    slider.setAttribute("aria-valuetext", momentName(moment));
  }

  /* The totals show the same time as the bands. */
  function showRange() {
    totals.chart.setRange(chart.axis === "time" ? chart.zoom : null);
  }

  const set = (name, otherwise) => (value) => {
    state.putAll({ [name]: String(value) === String(otherwise) ? null : value, ...(name === "by" ? {} : { zoom: null }) });
    draw();
  };

  function drawControls() {
    const { level, devices, device, by } = options;
    const bands = Object.entries(GROUPS).filter(([id]) => id !== "segment" || stack.lane).map(([id, [name]]) => [id, name]);
    controls.replaceChildren(
      run.levels.length > 1 ? select("Level", run.levels.map((one) => [one, one]), level, set("level", run.mainLevel)) : "",
      devices.length > 1 ? select("Device", devices.map((one) => [String(one), deviceName(one)]), String(device), set("device", String(devices[0]))) : "",
      select("Bands", bands, stack.bands.by, set("by", run.opening.by)),
      stack.lane ? select("Across", [["time", "time"], ["event", "events"]], state.get("axis", "time"), set("axis", "time")) : "",
      button("Zoom in", () => chart.zoomBy(0.5)), button("Zoom out", () => chart.zoomBy(2)), button("Show all", () => chart.setZoom(null)));
  }

  function draw() {
    options = stackOptions(run);
    stack = stackOf(run, options);
    drawControls();
    moments.replaceChildren(momentControl(run, () => show()));
    note.textContent = sourceNote(run, stack.lane);
    spanNote.replaceChildren(...rangeNote(run));
    chart.update({ ...stack, spans: chosenSpans(run), axis: state.get("axis", "time"), zoom: zoomIn(state.get("zoom")), moment: momentOf(run) });
    totals.update(options.device);
    showRange();
    show();
  }

  queueMicrotask(draw);
  return [h("h1", {}, "Timeline"),
    h("p", { class: "lead" }, "Drag over the chart to zoom in (or Ctrl and the wheel), double-click for all of it; a click pins a moment, which the flame graph, the map and the table of sites then show."),
    controls, chart.element, note, spanNote,
    h("div", { class: "controls moments" }, moments, field("Position", slider, true)),
    retryNote(run), makeUp.element,
    h("h2", {}, "Totals"), h("p", { class: "note" }, "Each stretch of time from its lowest to its highest bytes."), totals.legend, totals.box, totals.tables];
}
