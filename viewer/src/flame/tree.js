// Stacks merged into a tree, for flame graphs.

import { frameName } from "../model.js";

/** What the flame graph can show; `live` is of a moment, and null in its place of a function. */
export const METRICS = {
  live: ["live at the moment", null],
  total: ["total allocated", (site) => site.allocated_bytes],
  count: ["allocations (count)", (site) => site.allocations],
};

/** The frames of a site that are to be drawn, outermost first. `frames`: all, python or native. */
export function pathOf(site, { frames = "all", plumbing = false } = {}) {
  const path = [];
  for (let i = site.stack.length - 1; i >= 0; i--) {
    const frame = site.stack[i];
    if (frames !== "all" && frame.kind !== frames) continue;
    if (!plumbing && site.plumbing[i] === "1" && i !== site.own) continue;
    path.push(frame);
  }
  return path;
}

function node(name, frame) {
  return { name, frame, value: 0, before: 0, sites: [], below: new Map() };
}

function finish(one) {
  one.children = [...one.below.values()].map(finish);
  delete one.below;
  return one;
}

/**
 * `entries`: {site, value, before?}; `before` is the other file's figure in a comparison. A node's
 * value is that of everything below it. `callers`: the allocating frame first, its callers below.
 */
export function buildTree(entries, rootName, { callers = false, ...options } = {}) {
  const root = node(rootName, null);
  for (const { site, value, before = 0 } of entries) {
    const path = pathOf(site, options);
    if (callers) path.reverse();
    const names = path.length ? path.map((frame) => [frameName(frame), frame]) : [[site.function ?? "no stack", null]];
    let at = root;
    const add = () => {
      at.value += value;
      at.before += before;
      at.sites.push(site);
    };
    add();
    for (const [name, frame] of names) {
      const key = frame ? `${frame.kind} ${name}` : name;
      if (!at.below.has(key)) at.below.set(key, node(name, frame));
      at = at.below.get(key);
      add();
    }
  }
  return finish(root);
}

/** Each function once: {name, frame, total, self}; a recursive function counts once per stack. */
export function functionRows(entries, options) {
  const rows = new Map();
  for (const { site, value, before = 0 } of entries) {
    const path = pathOf(site, options);
    const seen = new Set();
    path.forEach((frame, i) => {
      const name = frameName(frame);
      if (!rows.has(name)) rows.set(name, { name, frame, total: 0, self: 0, before: 0 });
      const row = rows.get(name);
      if (!seen.has(name)) {
        row.total += value;
        row.before += before;
      }
      seen.add(name);
      if (i === path.length - 1) row.self += value;
    });
  }
  return [...rows.values()];
}
