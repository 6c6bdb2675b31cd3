// Named ranges of a run, as `gpumem-report ranges` lists them.

const MOST_NAMES = 16;

/** A name, or a path of names, without the numbers that PyTorch appends to operators' names. */
export const rangeTitle = (name) => name.replaceAll(/, (?:seq|op_id) = [\d#]+/g, "");

/* Names of a group are listed where they are few, all known and do not read like the group's. */
function namesOf(ranges, group) {
  const one = ranges[group];
  if (!one.names_complete || one.names < 2 || one.names > MOST_NAMES) return [];
  return ranges.map((range, index) => ({ range, index })).filter(({ range }) => range.group === group && rangeTitle(range.name) !== rangeTitle(one.name));
}

function title(range) {
  const name = rangeTitle(range.name);
  return range.domain ? `${range.domain}: ${name}` : range.source === "marks" ? `after the mark ${name}` : name;
}

/** The ranges that were closed, each before what lies in it: {range, index, depth, title}. */
export function rangeRows(document) {
  const ranges = document.ranges ?? [];
  const rows = [];
  const add = (range, index, depth) => range.closed && rows.push({ range, index, depth, title: title(range), order: rows.length });
  const list = (parent, depth) => ranges.forEach((range, index) => {
    if (range.parent !== parent || range.group !== null || depth > 64) return;
    add(range, index, depth);
    for (const name of namesOf(ranges, index)) add(name.range, name.index, depth + 1);
    list(index, depth + 1);
  });
  list(null, 0);
  return rows;
}

/** The instances that are known of a range: {what, name, from, to, instance}. */
export function rangeSpans(range) {
  return [["highest peak", range.highest], ["retained most", range.most_retained?.retained_bytes > 0 ? range.most_retained : null]]
    .filter(([, instance]) => instance)
    .map(([what, instance]) => ({ what, name: rangeTitle(instance.name), from: instance.start_s, to: instance.end_s, instance }));
}
