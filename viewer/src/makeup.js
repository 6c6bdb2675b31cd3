// Who held memory at a moment: exactly where the page has what came and went since, else by the
// windows that every site keeps. A moment is "peak", "work" (the end of the work), "end", or seconds.

import { known, time } from "./format.js";

/** The moment from which on the make-up is known to the byte. */
export const exactFrom = (run) => (known(run.history?.from_s) ? run.history.from_s : Infinity);

const NAMED = {
  peak: [(site) => site.bytes_at_peak, () => null],
  work: [(site) => site.work_bytes ?? site.live_bytes, (site) => site.work_count ?? site.live_count],
  end: [(site) => site.live_bytes, (site) => site.live_count],
};

function windowAt(site, moment) {
  let found = null;
  for (const window of site.windows ?? []) if (window.start_s <= moment) found = window;
  return found;
}

function windowSpan(run, sites, moment) {
  const starts = (sites.find((site) => site.windows?.length)?.windows ?? []).map((window) => window.start_s);
  const at = starts.filter((start) => start <= moment).length - 1;
  return [starts[Math.max(0, at)] ?? 0, starts[at + 1] ?? run.end];
}

/**
 * {rows: [{site, low, high, count}], how: "exact"|"peak"|"work"|"end"|"windows"|"none", span}; `count`
 * is null where it is not known. `sites` are those that are asked for.
 */
export function makeUpAt(run, sites, moment) {
  if (NAMED[moment]) {
    const [bytes, count] = NAMED[moment];
    if (sites.length && sites.every((site) => !known(bytes(site)))) return { how: "none", rows: [] };
    return { how: moment, rows: sites.map((site) => ({ site, low: bytes(site), high: bytes(site), count: count(site) })) };
  }
  if (moment >= exactFrom(run)) {
    const { live, counts } = run.past.sitesAfter(run.past.until(moment));
    return { how: "exact", rows: sites.map((site) => ({ site, low: live[site.index], high: live[site.index], count: counts[site.index] })) };
  }
  const rows = sites.map((site) => [site, windowAt(site, moment)]).filter(([, window]) => window)
    .map(([site, window]) => ({ site, low: window.min_bytes, high: window.max_bytes, count: null }));
  return rows.length ? { how: "windows", rows, span: windowSpan(run, sites, moment) } : { how: "none", rows: [] };
}

const HOW = {
  exact: "To the byte.",
  peak: "To the byte: what each site held when its level last stood at its peak.",
  work: "To the byte: what was live when the work ended, before the frees of the program's end.",
  end: "To the byte: what is live at the end of the recording.",
};

/** How good the figures of makeUpAt are, in words. */
export function makeUpNote({ how, span }, run, moment) {
  if (HOW[how]) return HOW[how];
  if (how === "none") return `Not recorded: ${moment === "peak" ? "what was live at the peak" : "the file has no windows of its sites"}.`;
  const since = exactFrom(run);
  const why = run.history?.reason ?? "a document opened as JSON has no events";
  return `Not to the byte, since ${why}${Number.isFinite(since) ? ` (from ${time(since)} on it is)` : ""}: the lowest and the highest of each site between ${time(span[0])} and ${time(span[1])}, which need not be of one moment.`;
}

/** Rows of sites summed by what `read` says of a site, largest first. */
export function groupRows(rows, read) {
  const groups = new Map();
  for (const { site, low, high } of rows) {
    const name = read(site);
    const group = groups.get(name) ?? { name, low: 0, high: 0, site };
    group.low += low;
    group.high += high;
    groups.set(name, group);
  }
  return [...groups.values()].filter((group) => group.high > 0).sort((a, b) => b.high - a.high);
}
