// Two files side by side: totals, sites that changed, and a flame graph of the difference.

import { announce, field, h, number, searchField, select, settled, size, table } from "../dom.js";
import { change as changeText, deviceName, known, size as sizeText, count } from "../format.js";
import { changesOf } from "../changes.js";
import { FlameChart } from "../flame/chart.js";
import { buildTree } from "../flame/tree.js";
import { changeColor } from "../palette.js";
import { payloadOf } from "../payload.js";
import { givenOrder, runsOf } from "../model.js";
import { levelColumn, showSite, siteButton } from "../site.js";
import { BigTable, rowsNote } from "../table.js";
import { shapeControls, shapeOf } from "./flame.js";

const METRICS = { live: "live", at_peak: "at peak", total: "total allocated", count: "allocations (count)" };
const WIDTHS = { larger: "the larger of the two", after: "the newer", before: "the older" };

function totals(before, after) {
  const devices = [...new Set([...before.devices, ...after.devices])];
  const rows = devices.map((device) => [device, before.total(device), after.total(device)]).filter(([, x, y]) => x || y);
  const value = (total, key) => (total ? total[key] : 0); // a device without a row was not used
  const both = (was, now, key) => (known(value(was, key)) && known(value(now, key)) ? value(now, key) - value(was, key) : null);
  const cells = (title, key) => [
    { title, numeric: true, cell: ([, , now]) => size(value(now, key)) },
    { title: "before", numeric: true, cell: ([, was]) => size(value(was, key)) },
    { title: "change", numeric: true, cell: ([, was, now]) => size(both(was, now, key), { signed: true }) }];
  return table("Totals of both files", [{ title: "where", cell: ([device]) => deviceName(device) },
    ...cells("current", "current_bytes"), ...cells("peak", "peak_bytes")], rows, { hideCaption: true });
}

function changeTable(runs) {
  const runOf = (row) => (row.after.site ? runs.after : runs.before);
  const bytes = (id, title, read) => ({ id, title, numeric: true, key: read, cell: (row) => size(read(row)) });
  const signed = (id, title, read) => ({ id, title, numeric: true, width: "9rem", key: (row) => Math.abs(read(row)), cell: (row) => size(read(row), { signed: true }) });
  return new BigTable({ label: "Sites of both files", sort: "difference", height: 560, onchoose: (row) => showSite(row.site, runOf(row)), columns: [
    { id: "place", title: "Site", width: "21rem", key: (row) => row.site.place, cell: (row) => siteButton(row.site, runOf(row)) },
    ...levelColumn([runs.before, runs.after], (row) => row.site),
    { id: "change", title: "Change", width: "7rem", key: (row) => row.change, cell: (row) => h("span", { class: `tag change-${row.change}` }, row.change) },
    signed("difference", "Live change", (row) => row.after.live - row.before.live),
    bytes("live", "Live", (row) => row.after.live), bytes("live_before", "before", (row) => row.before.live),
    signed("peak_difference", "Peak change", (row) => row.after.peak - row.before.peak),
    bytes("peak", "Own peak", (row) => row.after.peak), bytes("peak_before", "before", (row) => row.before.peak),
    { id: "count", title: "Allocations", numeric: true, key: (row) => row.after.count, cell: (row) => number(row.after.count) },
    { id: "count_before", title: "before", numeric: true, key: (row) => row.before.count, cell: (row) => number(row.before.count) },
    { id: "kind", title: "Kind", width: "6rem", key: (row) => row.site.kind, cell: (row) => row.site.kind }] });
}

/* The largest relative change of any frame sets the strength of the colours. */
function colorFor(node, tree) {
  const largest = Math.max(tree.largest, 1);
  return changeColor((node.after - node.before) / largest);
}

function largestChange(node) {
  return Math.max(Math.abs(node.after - node.before), ...node.children.map(largestChange));
}

function dress(node) {
  node.after = node.sites.reduce((sum, site) => sum + site.after, 0);
  node.children.forEach(dress);
}

/* Entries for buildTree: the stack of either file, with both figures. */
function entriesOf(changes, { metric, width, level }) {
  return changes.filter((one) => !level || one.site.level === level).map((one) => {
    const before = one.before[metric];
    const after = one.after[metric];
    const value = { larger: Math.max(before, after), after, before }[width];
    return { site: { ...one.site, after }, value, before };
  }).filter((entry) => entry.value > 0);
}

function comparison(before, after) {
  const changes = changesOf(before, after);
  const levels = [...new Set(changes.map((one) => one.site.level))];
  const options = { metric: "live", width: "larger", level: levels.includes("torch") ? "torch" : levels[0], ...shapeOf(), text: "", only: true };
  const show = (value) => (options.metric === "count" ? count(value) : sizeText(value));
  const difference = (value) => (options.metric === "count" ? (value > 0 ? "+" : "") + count(value) : changeText(value));
  const chart = new FlameChart({ label: "Flame graph of the difference",
    show: (node) => (node.before === null ? show(node.value) : `${show(node.before)} → ${show(node.after)} (${difference(node.after - node.before)})`),
    color: (node) => colorFor(node, chart.tree), onselect: () => {} });
  const grid = changeTable({ before, after });
  const note = h("p", { class: "note", role: "status" });

  function drawFlame() {
    const tree = buildTree(entriesOf(changes, options), "all", options);
    dress(tree);
    tree.largest = largestChange(tree);
    chart.update(tree, !options.upward);
  }
  function drawTable() {
    const rows = changes.filter((one) => (!options.only || one.change !== "same") && (!options.text || `${one.site.place}\n${one.key}`.toLowerCase().includes(options.text)));
    note.textContent = rowsNote(rows.length, changes.length, "sites");
    grid.update(rows);
  }
  const set = (name, draw) => (value) => {
    options[name] = value;
    draw();
  };
  queueMicrotask(() => {
    drawFlame();
    drawTable();
  });
  return [h("h2", {}, "Totals"), totals(before, after),
    h("h2", {}, "Flame graph of the difference"),
    h("p", { class: "note" }, h("span", { class: "swatch", style: { background: changeColor(1) } }), "more than before ",
      h("span", { class: "swatch", style: { background: changeColor(-1) } }), "less ", h("span", { class: "swatch", style: { background: changeColor(0) } }), "the same"),
    h("div", { class: "controls" }, select("Show", Object.entries(METRICS), options.metric, set("metric", drawFlame)),
      select("Width", Object.entries(WIDTHS), options.width, set("width", drawFlame)),
      levels.length > 1 ? select("Level", levels.map((level) => [level, level]), options.level, set("level", drawFlame)) : null,
      shapeControls(options, drawFlame)),
    h("div", { class: "controls" }, searchField("Find frames", settled((term) => chart.search(term)), "part of a function's name"),
      h("button", { type: "button", onclick: () => chart.zoomOut() }, "Show all"), chart.found),
    chart.element,
    h("h2", {}, "Sites"),
    h("div", { class: "controls" }, select("Show", [["1", "changed sites"], ["", "all sites"]], "1", (value) => set("only", drawTable)(Boolean(value))),
      searchField("Search", settled((text) => set("text", drawTable)(text.toLowerCase())), "function, file, library …")),
    note, grid.element];
}

/** From the first to the second of the files as they were `given`; others can be chosen or opened. */
export function compare(run, runs, job, given) {
  const list = [...given];
  let before = given.length > 1 ? given[0] : null;
  let after = given[1] ?? run;
  const message = h("p", { class: "note", role: "status" });
  const pickers = h("div", { class: "controls" });
  const body = h("div", {});

  async function open(file) {
    try {
      const payload = await payloadOf(await file.text());
      const opened = givenOrder(payload, runsOf(payload));
      opened.forEach((one) => {
        one.name = `${one.name} (${file.name})`;
      });
      list.push(...opened);
      [before, after] = [after, opened[0]];
      message.textContent = "";
      announce(`${file.name} was opened`);
    } catch (error) {
      message.textContent = error.message;
    }
    draw();
  }

  function draw() {
    const options = list.map((one, i) => [i, one.name]);
    const input = h("input", { type: "file", accept: ".html,.json", onchange: () => input.files[0] && open(input.files[0]) });
    pickers.replaceChildren(...[
      list.length > 1 ? select("Before", options, list.indexOf(before), (value) => {
        before = list[value];
        draw();
      }) : null,
      list.length > 1 ? select("After", options, list.indexOf(after), (value) => {
        after = list[value];
        draw();
      }) : null,
      field("Open another page or --json file", input)].filter(Boolean));
    body.replaceChildren(...(before ? comparison(before, after).flat(3).filter(Boolean) : [h("p", { class: "note" },
      "This page holds one file. gpumem-report html -o OUT OLD NEW makes one that compares two, or open a second here.")]));
  }
  draw();
  return [h("h1", {}, "Compare"), pickers, message, body];
}
