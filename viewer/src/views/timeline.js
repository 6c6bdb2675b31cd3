// Usage over time, what happened on it, and what memory was made of at a moment.

import { checkbox, field, h, number, select, size } from "../dom.js";
import { TimeChart } from "../chart.js";
import { deviceName, known, plural, share, time } from "../format.js";
import { exactFrom, groupRows, makeUpAt } from "../makeup.js";
import { colorOf, seriesStyle } from "../palette.js";
import { siteButton, swatch } from "../site.js";
import { BigTable } from "../table.js";

const SHOWN = 12;

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

const GROUPS = {
  category: ["category", (site) => site.category ?? "other"],
  library: ["library", (site) => site.library ?? "unknown"],
  phase: ["phase", (site) => site.phase ?? "other"],
  site: ["site", (site) => site.place],
};

const HOW = {
  exact: "To the byte: the file keeps every event from this moment to the end.",
  peak: "To the byte: what each site held when its level last stood at its peak.",
};

function makeUpNote({ how, span }, run) {
  if (HOW[how]) return HOW[how];
  if (how === "none") return "The file has no make-up for this moment: its sites kept no windows.";
  const since = exactFrom(run);
  const why = run.history?.reason ?? "a document opened as JSON has no events";
  return `Not to the byte, since ${why}${Number.isFinite(since) ? ` (from ${time(since)} on it is)` : ""}: the lowest and the highest of each site between ${time(span[0])} and ${time(span[1])}, which need not be of one moment.`;
}

class MakeUp {
  constructor(run) {
    Object.assign(this, { run, group: "category", level: run.levels.includes("torch") ? "torch" : "driver", device: null, moment: "peak" });
    this.body = h("div", { "aria-live": "polite" });
    const levels = run.levels.map((level) => [level, level]);
    this.element = h("section", { class: "makeup", "aria-labelledby": "makeup-title" },
      h("h2", { id: "makeup-title" }, "Make-up at the chosen moment"),
      h("div", { class: "controls" },
        select("By", Object.entries(GROUPS).map(([id, [title]]) => [id, title]), this.group, (value) => this.set({ group: value })),
        levels.length > 1 ? select("Level", levels, this.level, (value) => this.set({ level: value })) : null),
      this.body);
  }

  set(values) {
    Object.assign(this, values);
    const sites = this.run.sites.filter((site) => site.level === this.level && site.device === this.device);
    const made = makeUpAt(this.run, sites, this.moment);
    const rows = groupRows(made.rows, GROUPS[this.group][1]);
    const ranged = made.how === "windows";
    const sum = rows.reduce((total, row) => total + row.high, 0);
    const rest = rows.slice(SHOWN).reduce((one, row) => ({ low: one.low + row.low, high: one.high + row.high }), { low: 0, high: 0 });
    const shown = rows.length > SHOWN ? [...rows.slice(0, SHOWN), { name: `${rows.length - SHOWN} more`, ...rest }] : rows;
    const where = this.moment === "peak" ? "its peak" : time(this.moment);
    this.body.replaceChildren(
      h("p", {}, `${deviceName(this.device)}, ${this.level} level, at ${where}`, ranged || !rows.length ? "" : [": ", size(sum)]),
      h("p", { class: "note" }, makeUpNote(made, this.run)),
      rows.length ? this.table(shown, ranged, sum) : h("p", { class: "note" }, "Nothing was live."));
  }

  table(rows, ranged, sum) {
    const name = (row) => (this.group === "site" && row.site ? siteButton(row.site, this.run)
      : [this.group === "category" && row.site ? swatch(colorOf(row.name)) : null, row.name]);
    const bar = (row) => h("span", { class: "inline-bar", style: { width: `${(100 * row.high) / (rows[0].high || 1)}%` } });
    return h("table", { class: "plain make-up-table" }, h("caption", { class: "visually-hidden" }, "Make-up"),
      h("thead", {}, h("tr", {}, [GROUPS[this.group][0], ...(ranged ? ["lowest", "highest"] : ["bytes", "share"])]
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
    { id: "site", title: "Site", width: "24rem", key: (row) => row.site?.place, cell: (row) => (row.site ? siteButton(row.site, run) : "–") }] });
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

export function timeline(run) {
  const devices = [...new Set([...run.devices.filter(known), ...run.document.timeline.map((line) => line.device)])];
  let device = devices.find(known) ?? devices[0] ?? null;
  const hidden = new Set();
  const makeUp = new MakeUp(run);
  const box = h("div", { class: "time-chart" });
  const legend = h("div", { class: "series", role: "group", "aria-label": "Series" });
  const at = h("output", { class: "at" });
  const tables = h("div", {});
  const slider = h("input", { type: "range", min: 0, max: 10000, value: 10000, class: "moment",
    oninput: () => choose((run.end * slider.value) / 10000) });
  const chart = new TimeChart(box, { onmoment: (moment) => choose(moment), onhover: (moment) => readings(moment ?? chart?.moment ?? null) });

  const linesHere = () => run.document.timeline.filter((line) => (line.device === device || line.device === null) && line.max.length);
  const shownLines = () => linesHere().filter((line) => !hidden.has(line.series));

  function readings(moment) {
    for (const output of legend.querySelectorAll("output")) {
      const line = linesHere().find((one) => one.series === output.dataset.series);
      const value = moment === null ? null : valueAt(line, moment);
      output.replaceChildren(value && known(value.max) ? (value.min === value.max ? size(value.max) : h("span", {}, size(value.min), " – ", size(value.max))) : "");
    }
    at.textContent = moment === null ? "" : `at ${time(moment)}`;
  }

  function choose(moment) {
    const peak = moment === "peak";
    const seconds = peak ? run.total(device)?.peak_at_s ?? run.end : Math.max(0, Math.min(run.end, moment));
    slider.value = Math.round((10000 * seconds) / (run.end || 1));
    slider.setAttribute("aria-valuetext", time(seconds));
    chart.setMoment(seconds);
    makeUp.set({ device, moment: peak ? "peak" : seconds });
    readings(seconds);
  }

  function draw() {
    const lines = linesHere();
    const events = eventsOf(run, device);
    legend.replaceChildren(...lines.map((line) => {
      const { color, name } = seriesStyle(line.series);
      const toggle = checkbox(name, !hidden.has(line.series), (on) => {
        if (on) hidden.delete(line.series);
        else hidden.add(line.series);
        chart.update(shownLines(), events, run.end);
      });
      toggle.insertBefore(swatch(color), toggle.lastChild);
      return h("div", { class: "series-one" }, toggle, h("output", { data: { series: line.series } }));
    }));
    chart.update(shownLines(), events, run.end);
    tables.replaceChildren(...tableOf(lines, events, run));
    choose("peak");
  }

  const button = (text, action) => h("button", { type: "button", onclick: action }, text);
  const marks = run.document.marks.map((mark, i) => [i, `${mark.name ?? "mark"}, ${time(mark.time_s)}`]);
  queueMicrotask(draw);
  return [h("h1", {}, "Timeline"),
    h("p", { class: "lead" }, "Each stretch of time from its lowest to its highest bytes. Drag over the chart to zoom in, click to choose a moment."),
    h("div", { class: "controls" },
      devices.length > 1 ? select("Device", devices.map((one) => [String(one), deviceName(one)]), String(device), (value) => {
        device = value === "null" ? null : Number(value);
        draw();
      }) : null,
      button("Zoom in", () => chart.zoom(0.5)), button("Zoom out", () => chart.zoom(2)), button("Show all", () => chart.zoomOut())),
    legend, box,
    h("div", { class: "controls moments" }, field("Moment", slider, true), at,
      button("Peak", () => choose("peak")), button("End", () => choose(run.end)),
      marks.length ? select("Mark", [["", "choose"], ...marks], "", (value) => value !== "" && choose(run.document.marks[value].time_s)) : null),
    retryNote(run), makeUp.element, tables];
}
