// Who held memory at a moment: exactly where the file keeps the events since, else by the windows
// that every site keeps.

/* The history's events with absolute times, made once. */
function eventsOf(run) {
  if (run.events === undefined) {
    const { history } = run;
    run.events = null;
    if (history?.dt_ns.length) {
      const times = new Float64Array(history.dt_ns.length);
      let now = 0;
      history.dt_ns.forEach((step, i) => {
        now += step;
        times[i] = now / 1e9;
      });
      run.events = { times, site: history.site, bytes: history.bytes };
    }
  }
  return run.events;
}

/** True when the make-up at that moment is known to the byte. */
export const exactFrom = (run) => (run.history && run.history.from_s !== null ? run.history.from_s : Infinity);

function exactAt(run, sites, moment) {
  const live = new Map(sites.map((site) => [site.index, site.live_bytes]));
  const events = eventsOf(run);
  for (let i = (events?.times.length ?? 0) - 1; i >= 0 && events.times[i] > moment; i--) {
    const index = events.site[i];
    if (live.has(index)) live.set(index, live.get(index) - events.bytes[i]);
  }
  return sites.map((site) => ({ site, low: live.get(site.index), high: live.get(site.index) }));
}

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
 * {rows: [{site, low, high}], how: "exact"|"peak"|"windows"|"none", span}. `moment` is in seconds, or
 * "peak". `sites` are those of the level and device that are asked for.
 */
export function makeUpAt(run, sites, moment) {
  if (moment === "peak")
    return { how: "peak", rows: sites.map((site) => ({ site, low: site.bytes_at_peak, high: site.bytes_at_peak })) };
  if (moment >= exactFrom(run) || moment >= run.end) return { how: "exact", rows: exactAt(run, sites, moment) };
  const rows = sites.map((site) => [site, windowAt(site, moment)]).filter(([, window]) => window)
    .map(([site, window]) => ({ site, low: window.min_bytes, high: window.max_bytes }));
  return rows.length ? { how: "windows", rows, span: windowSpan(run, sites, moment) } : { how: "none", rows: [] };
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
