// The memory map of a moment of the past, from what came and went: the same lists as the page's own
// map of the end (gm_page_memory_map), by the same rules.

import { exactFrom } from "../makeup.js";

const BLOCK = 0; // enum gm_page_role
const SLAB = 2;
const MAPPING = 3;
const ALLOCATION = 4;
const RESERVATION = 6;

/** After how many changes a moment is; -1 where the page does not have it. */
export function changesUntil(run, moment, device) {
  const { past } = run;
  if (!past) return -1;
  if (moment === "end") return past.length;
  if (moment === "work") return past.workEnd;
  if (moment !== "peak") return moment >= exactFrom(run) ? past.until(moment) : -1;
  const lane = past.lane(run.mainLevel, device, run.owned);
  return run.history.complete && lane.peak >= 0 ? lane.at[lane.peak] + 1 : -1;
}

/* What is live, as ranges in order of device and address. */
function rangesOf(past, count) {
  const { shapes } = past;
  const ranges = [...past.liveAfter(count)].map((change) => {
    const shape = past.shape[change];
    const start = past.address[past.place[change]];
    return { start, end: start + shapes.bytes[shape], role: shapes.role[shape], device: shapes.device[shape], site: shapes.site[shape],
      torch: shapes.torch[shape] === 1, level: past.sites[shapes.site[shape]]?.level, time: past.times[change] };
  });
  return ranges.filter((range) => range.role <= ALLOCATION || range.role === RESERVATION)
    .sort((a, b) => a.device - b.device || a.start - b.start || b.end - a.end || (a.role === BLOCK) - (b.role === BLOCK));
}

/* The driver's memory: one range each, mappings that touch are one, unless other addresses begin there. */
function segmentsIn(ranges) {
  const segments = [];
  const begins = new Set(ranges.filter((range) => range.role === RESERVATION).map((range) => range.start));
  for (const range of ranges) {
    if (range.role === BLOCK || range.role === RESERVATION) continue;
    const last = segments[segments.length - 1];
    if (last && range.role === MAPPING && last.role === MAPPING && last.end === range.start && !begins.has(range.start) && last.device === range.device) {
      last.end = range.end;
      last.torch ||= range.torch;
      last.parts.push(range);
    } else segments.push({ ...range, parts: [range], torchBlocks: [], poolBlocks: [] });
  }
  return segments;
}

/* Puts every block into the segment that holds it. */
function fill(segments, ranges) {
  let next = 0;
  let open = null;
  for (const range of ranges) {
    if (range.role !== BLOCK) continue;
    while (next < segments.length && (segments[next].device < range.device || (segments[next].device === range.device && segments[next].start <= range.start)))
      open = segments[next++];
    if (!open || open.device !== range.device || range.start >= open.end || open.role === ALLOCATION) continue;
    (range.level === "torch" ? open.torchBlocks : open.poolBlocks).push(range);
  }
}

/* Rows of the map: {start, end, device, type, site, blocks}. */
function rowsOf(segments, slabBytes) {
  const rows = [];
  for (const segment of segments) {
    const row = { start: segment.start, end: segment.end, device: segment.device, site: segment.site };
    const owned = segment.role !== ALLOCATION && (segment.torch || segment.torchBlocks.length > 0);
    if (owned) rows.push({ ...row, type: segment.role === MAPPING ? "expandable" : "segment", blocks: segment.torchBlocks });
    else if (segment.poolBlocks.length) rows.push({ ...row, type: "pool", blocks: segment.poolBlocks });
    else if (segment.role === MAPPING) rows.push({ ...row, type: "mapping", blocks: segment.parts });
    else if (segment.role === SLAB) {
      const start = segment.start - (segment.start % slabBytes);
      const last = rows[rows.length - 1];
      if (last?.type === "slab" && last.start === start && last.device === segment.device) last.blocks.push(...segment.parts);
      else rows.push({ ...row, start, end: start + slabBytes, type: "slab", blocks: segment.parts });
    } else rows.push({ ...row, type: "allocation", blocks: segment.parts });
  }
  return rows;
}

/** The map after so many changes. */
export function mapAfter(run, count) {
  const { past } = run;
  const ranges = rangesOf(past, count);
  const found = segmentsIn(ranges);
  fill(found, ranges);
  const segments = { device: [], type: [], kind: [], address: [], bytes: [], used_bytes: [], site: [], first_block: [] };
  const blocks = { offset: [], bytes: [], site: [], time_us: [] };
  for (const row of rowsOf(found, past.slab_bytes)) {
    segments.device.push(row.device < 0 ? null : row.device);
    segments.type.push(row.type);
    segments.kind.push(past.sites[row.site]?.kind);
    segments.address.push(row.start);
    segments.bytes.push(row.end - row.start);
    segments.site.push(row.site);
    segments.first_block.push(blocks.offset.length);
    let used = 0;
    for (const block of row.blocks) {
      const bytes = Math.min(block.end, row.end) - block.start;
      used += bytes;
      blocks.offset.push(block.start - row.start);
      blocks.bytes.push(bytes);
      blocks.site.push(block.site);
      blocks.time_us.push(Math.floor(block.time * 1e6));
    }
    segments.used_bytes.push(used);
  }
  return { segments, blocks, omitted_blocks: 0, omitted_bytes: 0, unplaced_bytes: 0 };
}
