// Two files' sites side by side, matched by what their stacks read (as src/report/gate/compare.c does).

import { siteKey } from "./model.js";

function sums(side) {
  return { ...side, site: null, live: 0, peak: 0, at_peak: 0, total: 0, count: 0 };
}

function add(to, site) {
  to.site = site;
  to.live += site.live_bytes;
  to.peak += site.peak_bytes;
  to.at_peak += site.bytes_at_peak;
  to.total += site.allocated_bytes;
  to.count += site.allocations;
}

function nameOf({ before, after }) {
  if (!before.site) return "appeared";
  if (!after.site) return "vanished";
  if (after.live !== before.live) return after.live > before.live ? "grew" : "shrank";
  return "same";
}

/** [{key, site, before, after, change}] of every site of either run. */
export function changesOf(oldRun, newRun) {
  const changes = new Map();
  const collect = (run, side) => {
    for (const site of run.sites) {
      if (!site.allocations) continue;
      const key = siteKey(site);
      if (!changes.has(key)) changes.set(key, { key, before: sums(), after: sums() });
      add(changes.get(key)[side], site);
    }
  };
  collect(oldRun, "before");
  collect(newRun, "after");
  return [...changes.values()].map((one) => ({ ...one, site: one.after.site ?? one.before.site, change: nameOf(one) }));
}
