// The columns of the stacked timeline: of each pixel's stretch the moment at which the total is
// highest, so that no peak is lost however much a pixel holds.

import { upper } from "../history.js";

/** Where a change stands on the axis. */
export const position = (lane, axis, i) => (axis === "event" ? i : lane.times[i]);

/* How many changes stand before a place on the axis. */
function before(lane, axis, place) {
  if (axis === "event") return Math.max(0, Math.min(lane.length, Math.ceil(place)));
  let count = upper(lane.times, place);
  while (count > 0 && lane.times[count - 1] >= place) count--;
  return count;
}

/**
 * Of `width` columns between two places on the axis: {values (band by band of each column), totals,
 * at (the change after which it is so, -1: none yet), changes (how many the column has)}.
 */
export function columnsOf({ lane, bands, from, to, width, axis }) {
  const { bytes, thinned } = lane.history;
  const { count, of } = bands;
  const values = new Float64Array(width * count);
  const totals = new Float64Array(width);
  const at = new Int32Array(width).fill(-1);
  const changes = new Int32Array(width);
  const live = new Float64Array(count);
  let next = Math.max(before(lane, axis, from), axis === "event" ? 0 : lane.start);
  let applied = 0;
  for (let column = 0; column < width; column++) {
    const end = column + 1 === width ? before(lane, axis, to + 1e-12) : before(lane, axis, from + ((to - from) * (column + 1)) / width);
    let best = next - 1;
    let most = best >= 0 ? lane.totals[best] : 0;
    if (thinned && best >= 0 && !lane.whole(best)) most = -1;
    for (let i = next; i < end; i++)
      if (lane.totals[i] > most && (!thinned || lane.whole(i))) {
        most = lane.totals[i];
        best = i;
      }
    for (; applied <= best; applied++) live[of[applied]] += bytes[lane.at[applied]];
    values.set(live, column * count);
    totals[column] = best >= 0 ? lane.totals[best] : 0;
    at[column] = best;
    changes[column] = Math.max(0, end - next);
    next = Math.max(next, end);
  }
  return { values, totals, at, changes };
}

/**
 * What the sites' windows know: {from, to, values, tops} for each stretch, in order of time: what each
 * band held at least, and at most. The peak is a moment of its own, where the two are one.
 */
export function windowSamples(sites, bands, end, peakAt) {
  const starts = [...new Set(sites.flatMap((site) => (site.windows ?? []).map((window) => window.start_s)))].sort((a, b) => a - b);
  const sampleOf = (read) => {
    const values = new Float64Array(bands.count);
    for (const site of sites) values[bands.ofSite(site)] += read(site);
    return values;
  };
  const windowOf = (site, from) => (site.windows ?? []).filter((window) => window.start_s <= from).pop();
  const samples = starts.map((from, i) => ({ from, to: starts[i + 1] ?? end, values: sampleOf((site) => windowOf(site, from)?.min_bytes ?? 0),
    tops: sampleOf((site) => windowOf(site, from)?.max_bytes ?? 0) }));
  const held = sampleOf((site) => site.bytes_at_peak);
  return { samples, peak: peakAt === null || peakAt === undefined ? null : { moment: peakAt, values: held, tops: held } };
}
