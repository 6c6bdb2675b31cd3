// The moment that the flame graph, the map and the tables show, and the one that a page opens with.

import { select } from "./dom.js";
import { known, time } from "./format.js";
import { state } from "./state.js";

const NAMES = { peak: "the peak", work: "the end of the work", end: "the end" };

/* The event that an `oom` finding tells of: the last one of its size, else of its device. */
function refusal(run, finding) {
  const mine = run.document.ooms.filter((oom) => finding.device === null || oom.device === finding.device);
  return mine.filter((oom) => oom.requested_bytes === finding.bytes).pop() ?? mine[mine.length - 1];
}

/** What the first finding is about: {moment, site, by, finding}. Without findings it is the peak. */
export function openingOf(run) {
  const finding = run.document.findings.find((one) => one.severity !== "note") ?? null;
  const site = finding ? run.byId.get(finding.site) ?? null : null;
  const categories = new Set(run.sites.filter((one) => one.level === run.mainLevel).map((one) => one.category));
  const opening = { moment: "peak", site: null, by: categories.size > 1 ? "category" : "site", finding };
  if (!finding) return opening;
  if (finding.id === "oom") {
    const oom = refusal(run, finding);
    return oom ? { ...opening, moment: oom.time_s } : opening;
  }
  if (finding.id.startsWith("leak.") && site)
    return { ...opening, moment: finding.id === "leak.grow" ? "work" : "end", site, by: "site" };
  return opening;
}

/** The moment that is shown: "peak", "work", "end", or seconds. */
export function momentOf(run) {
  const text = state.get("at");
  if (NAMES[text]) return text;
  const seconds = Number.parseFloat(text);
  return Number.isFinite(seconds) ? Math.max(0, Math.min(run.end, seconds)) : run.opening.moment;
}

export function setMoment(run, moment) {
  state.put("at", moment, run.opening.moment);
}

export const momentName = (moment) => NAMES[moment] ?? time(moment);

/** "live at the peak", "live at 12.30 s" */
export const liveAt = (moment) => `live at ${momentName(moment)}`;

/** The moments that have a name: [[value, name]]. */
export function moments(run) {
  const { marks, ooms } = run.document;
  const refused = ooms.map((oom, i) => [String(oom.time_s), `out of memory${ooms.length > 1 ? ` ${i + 1}` : ""}, ${time(oom.time_s)}`]);
  const marked = marks.slice(0, 200).map((mark) => [String(mark.time_s), `${mark.name ?? "mark"}, ${time(mark.time_s)}`]);
  const worked = run.sites.some((site) => known(site.work_bytes));
  return [...new Map([...Object.entries(NAMES), ...refused, ...marked].filter(([value]) => value !== "work" || worked))];
}

/** A control that chooses the moment; `onchange` draws anew. */
export function momentControl(run, onchange) {
  const now = String(momentOf(run));
  const list = moments(run);
  const options = list.some(([value]) => value === now) ? list : [...list, [now, `${time(Number(now))}, as pinned`]];
  return select("Moment", options, now, (value) => {
    setMoment(run, NAMES[value] ? value : Number(value));
    onchange(momentOf(run));
  });
}

