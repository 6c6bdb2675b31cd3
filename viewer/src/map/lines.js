// The memory map as lines: a segment is one line, or several where it is longer than a line; long
// stretches without a block are folded into one.

export const TYPES = {
  segment: "PyTorch segment",
  expandable: "PyTorch expandable segment",
  pool: "program's own pool",
  slab: "slab of small allocations",
  mapping: "mapped memory",
  allocation: "allocation",
};

/** The segments of a map as objects, with what is free in them. */
export function segmentsOf(map) {
  const { segments, blocks } = map;
  const all = blocks.offset.length;
  return segments.address.map((address, i) => {
    const bytes = segments.bytes[i];
    const used = Math.min(bytes, segments.used_bytes[i]);
    const first = segments.first_block[i];
    const last = segments.first_block[i + 1] ?? all;
    return { index: i, address, bytes, used, free: bytes - used, first, last, device: segments.device[i], type: segments.type[i],
      kind: segments.kind[i], site: segments.site[i], largest: largestHole(blocks, first, last, bytes),
      pinned: used > 0 && used < bytes && ["segment", "pool", "slab"].includes(segments.type[i]) };
  });
}

function largestHole(blocks, first, last, bytes) {
  let at = 0;
  let most = 0;
  for (let i = first; i < last; i++) {
    most = Math.max(most, blocks.offset[i] - at);
    at = Math.max(at, blocks.offset[i] + blocks.bytes[i]);
  }
  return Math.max(most, bytes - at);
}

/** The first of the blocks [first, last) that ends after `offset`. */
export function blockAfter(blocks, first, last, offset) {
  let low = first;
  let high = last;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (blocks.offset[middle] + blocks.bytes[middle] <= offset) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** A length that makes about 100 lines of everything, so that most segments stay on one. */
export function lineLength(segments) {
  const sum = segments.reduce((total, segment) => total + segment.bytes, 0);
  return Math.max(64 << 20, 2 ** Math.ceil(Math.log2(Math.max(1, sum / 100))));
}

/** {segment, from, to, first, last, folded} of each line; `length` in bytes, 0 for whole segments. */
export function linesOf(segments, blocks, length) {
  const lines = [];
  for (const segment of segments) {
    const step = length || segment.bytes;
    for (let from = 0; from < segment.bytes; from += step) {
      const to = Math.min(segment.bytes, from + step);
      const first = blockAfter(blocks, segment.first, segment.last, from);
      let last = first;
      while (last < segment.last && blocks.offset[last] < to) last++;
      const before = lines[lines.length - 1];
      const empty = first === last && segment.bytes > step;
      if (empty && before?.segment === segment && before.empty) {
        before.to = to;
        before.folded = true;
      } else lines.push({ segment, from, to, first, last, empty, folded: false });
    }
  }
  return lines;
}
