// The bands of the stacked timeline: what the live memory of a level is divided by.

import { address, size } from "../format.js";
import { colorOf } from "../palette.js";

const MOST = 15; // bands; the rest is one more

const HUES = ["#4477aa", "#d98c3f", "#7a9a4a", "#aa6fb0", "#c45a77", "#5b8f8a", "#b3a078", "#7272b8", "#9c9c3c", "#66a8d4", "#cc7a5c", "#6d8f5a",
  "#b86c9c", "#a8785a", "#5f9ea0"];
const REST = "#9aa0a8";

export const GROUPS = {
  category: ["category", (site) => site.category ?? "other"],
  site: ["site", (site) => site.id],
  library: ["library", (site) => site.library ?? "unknown"],
  phase: ["phase", (site) => site.phase ?? "other"],
  segment: ["segment", null],
};

const BLOCK = 0;
const MAPPING = 3;
const NO_ADDRESS = 5; // and those beyond: enum gm_page_role

/* Stretches of the driver's memory in order of address: allocations, and mappings that touch, merged. */
function regionsOf(past) {
  const seen = new Map();
  for (let i = 0; i < past.length; i++) {
    const shape = past.shape[i];
    const role = past.shapes.role[shape];
    if (!past.came[i] || role === BLOCK || role >= NO_ADDRESS) continue;
    const low = past.address[past.place[i]];
    const bytes = past.shapes.bytes[shape];
    seen.set(`${low} ${bytes}`, { low, high: low + bytes, mapping: role === MAPPING, device: past.shapes.device[shape], live: 0 });
  }
  const regions = [];
  for (const one of [...seen.values()].sort((a, b) => a.low - b.low || b.high - a.high)) {
    const last = regions[regions.length - 1];
    if (last && last.mapping && one.mapping && one.low <= last.high && one.device === last.device) last.high = Math.max(last.high, one.high);
    else regions.push(one);
  }
  let reach = 0;
  for (const one of regions) one.reach = reach = Math.max(reach, one.high);
  return regions;
}

/* The last region that holds an address, of several the one that is live; -1. */
function regionAt(regions, where) {
  let low = 0;
  let high = regions.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (regions[middle].low <= where) low = middle + 1;
    else high = middle;
  }
  let found = -1;
  for (let i = low - 1; i >= 0 && regions[i].reach > where; i--) {
    if (regions[i].high <= where) continue;
    if (regions[i].live > 0) return i;
    if (found < 0) found = i;
  }
  return found;
}

/** By change, the number of the region that its memory lies in; -1. Made once. */
function regionsByChange(past) {
  if (past.regionOf) return past.regionOf;
  const regions = regionsOf(past);
  const at = new Int32Array(past.address.length).fill(-1);
  past.regions = regions;
  past.regionOf = new Int32Array(past.length).fill(-1);
  for (let i = 0; i < past.length; i++) {
    const place = past.place[i];
    const role = past.shapes.role[past.shape[i]];
    if (past.came[i]) at[place] = role >= NO_ADDRESS ? -1 : regionAt(regions, past.address[place]);
    past.regionOf[i] = at[place];
    if (role !== BLOCK && at[place] >= 0) regions[at[place]].live += past.came[i] ? 1 : -1;
  }
  return past.regionOf;
}

const regionName = (region) => (region ? `${address(region.low)}, ${size(region.high - region.low)}` : "no address");

/* {names[], site[], of(change)}: every group, before the small ones are summed up. */
function groupsOf(run, by) {
  if (by === "segment") {
    const regionOf = regionsByChange(run.past);
    const { regions } = run.past;
    return { names: [...regions.map(regionName), regionName(null)], sites: [], of: (change) => (regionOf[change] < 0 ? regions.length : regionOf[change]) };
  }
  const read = GROUPS[by][1];
  const numbers = new Map();
  const names = [];
  const sites = [];
  const bySite = run.sites.map((site) => {
    const name = read(site);
    if (!numbers.has(name)) {
      numbers.set(name, names.length);
      names.push(by === "site" ? site.place : name);
      sites.push(site);
    }
    return numbers.get(name);
  });
  return { names, sites, bySite, of: (change) => bySite[run.past.site[change]] };
}

/* The groups' highest and mean bytes over a lane. */
function figuresOf(lane, group, count) {
  const live = new Float64Array(count);
  const peak = new Float64Array(count);
  const area = new Float64Array(count);
  const since = new Float64Array(count);
  const { bytes } = lane.history;
  for (let i = 0; i < lane.length; i++) {
    const g = group[i];
    area[g] += live[g] * (i - since[g]);
    since[g] = i;
    live[g] += bytes[lane.at[i]];
    if (live[g] > peak[g]) peak[g] = live[g];
  }
  for (let g = 0; g < count; g++) area[g] += live[g] * (lane.length - since[g]);
  return { peak, area };
}

/* The same by what the document keeps of each site. */
function figuresOfSites(sites, groups, peak, area) {
  for (const site of sites) {
    const g = groups.bySite[site.index];
    peak[g] += site.peak_bytes;
    area[g] += (site.windows ?? []).reduce((sum, window) => sum + window.last_bytes, site.bytes_at_peak);
  }
}

/**
 * The bands of the sites of a level and device, from the bottom up: {names[], colors[], sites[],
 * count, of (by change of the lane), ofSite (by site)}. The most lasting are at the bottom; small
 * ones are summed up in the last.
 */
export function bandsOf(run, { by, sites, lane, focus }) {
  const groups = groupsOf(run, by);
  const count = groups.names.length;
  const byChange = lane ? lane.at.map((change) => groups.of(change)) : null;
  const { peak, area } = lane ? figuresOf(lane, byChange, count) : { peak: new Float64Array(count), area: new Float64Array(count) };
  if (groups.bySite && !(lane && run.history.complete)) figuresOfSites(sites, groups, peak, area);
  const first = focus && groups.bySite ? groups.bySite[focus.index] : -1;
  const shown = [...peak.keys()].filter((g) => peak[g] > 0).sort((a, b) => (b === first) - (a === first) || peak[b] - peak[a]).slice(0, MOST);
  const rest = peak.reduce((sum, one) => sum + (one > 0 ? 1 : 0), 0) - shown.length;
  shown.sort((a, b) => area[b] - area[a]);
  const band = new Int32Array(count).fill(shown.length);
  shown.forEach((g, i) => {
    band[g] = i;
  });
  const named = ["site", "segment"].includes(by) ? (_, i) => HUES[i % HUES.length] : (g) => colorOf(groups.names[g]);
  return { by, names: [...shown.map((g) => groups.names[g]), ...(rest ? [`${rest} more`] : [])],
    colors: [...shown.map(named), ...(rest ? [REST] : [])], sites: by === "site" ? shown.map((g) => groups.sites[g]) : [],
    count: shown.length + (rest ? 1 : 0), of: byChange ? byChange.map((g) => band[g]) : null,
    ofSite: groups.bySite ? (site) => band[groups.bySite[site.index]] : null };
}
