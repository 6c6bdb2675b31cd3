// The flame graph: who holds or allocated what, by stack.

import { checkbox, h, number, searchField, select, settled, size } from "../dom.js";
import { count, share, size as sizeText } from "../format.js";
import { Filters } from "../filters.js";
import { FlameChart } from "../flame/chart.js";
import { METRICS, buildTree, functionRows } from "../flame/tree.js";
import { makeUpAt, makeUpNote } from "../makeup.js";
import { framePlace } from "../model.js";
import { momentControl, momentName, momentOf } from "../moment.js";
import { frameColor } from "../palette.js";
import { siteButton } from "../site.js";
import { state } from "../state.js";
import { BigTable } from "../table.js";

/* How stacks are drawn, as the address has it. */
const SHAPE = { frames: "all", callers: false, upward: false, plumbing: false };

export const shapeOf = () => Object.fromEntries(Object.entries(SHAPE).map(([name, value]) => [name, value === false ? state.get(name) === "true" : state.get(name, value)]));

/** The controls that say how stacks are drawn; shared with the comparison. */
export function shapeControls(options, onchange) {
  const set = (name) => (value) => {
    options[name] = value;
    state.put(name, value, SHAPE[name]);
    onchange();
  };
  return [
    select("Frames", [["all", "Python and native"], ["python", "Python only"], ["native", "native only"]], options.frames, set("frames")),
    select("Order", [["callees", "from the outermost caller"], ["callers", "inverted: from the allocating frame"]],
      options.callers ? "callers" : "callees", (value) => set("callers")(value === "callers")),
    checkbox("Root at the bottom", options.upward, set("upward"), "as flames; else the root is on top"),
    checkbox("Plumbing", options.plumbing, set("plumbing"), "also frames that nobody looks for: CUDA, allocators, interpreters"),
  ];
}

function functionColumns(options) {
  const figure = (value) => (options.metric === "count" ? number(value) : size(value));
  return [
    { id: "name", title: "Function", width: "24rem", key: (row) => row.name, cell: (row) => row.name },
    { id: "total", title: "With callees", numeric: true, width: "9rem", key: (row) => row.total, cell: (row) => figure(row.total) },
    { id: "self", title: "Itself", numeric: true, width: "9rem", key: (row) => row.self, cell: (row) => figure(row.self) },
    { id: "kind", title: "Kind", width: "6rem", key: (row) => row.frame.kind, cell: (row) => row.frame.kind },
    { id: "where", title: "Where", width: "30rem", key: (row) => framePlace(row.frame), cell: (row) => framePlace(row.frame) },
  ];
}

function chosen(node, run, show, whole) {
  const sites = [...new Set(node.sites)].slice(0, 8);
  return [h("h2", {}, node.name), h("p", {}, `${show(node)}, ${share(node.value, whole)}`, node.frame ? ` · ${framePlace(node.frame)}` : ""),
    h("p", { class: "note" }, `${count(node.sites.length)} sites below it${node.sites.length > sites.length ? ", among them" : ""}:`),
    h("ul", { class: "plain-list" }, sites.map((site) => h("li", {}, siteButton(site, run))))];
}

export function flame(run) {
  const options = { metric: METRICS[state.get("metric")] ? state.get("metric") : "live", ...shapeOf() };
  let moment = momentOf(run);
  const text = (value) => (options.metric === "count" ? `${count(value)} allocations` : sizeText(value));
  const chart = new FlameChart({ label: "Flame graph", show: (node) => text(node.value),
    color: (node) => frameColor(node.frame, node.name),
    onselect: (node, path) => {
      details.replaceChildren(...chosen(node, run, (one) => text(one.value), chart.tree.value));
      state.put("frame", path);
    } });
  const details = h("div", { class: "chosen", "aria-live": "polite" });
  const whole = h("p", { class: "note", role: "status" });
  const source = h("p", { class: "note" });
  const filters = new Filters(run, { level: "one", search: false, onchange: () => draw() });
  const table = new BigTable({ label: "Functions of the flame graph", columns: functionColumns(options), sort: "total", height: 420 });

  function entriesNow() {
    const read = METRICS[options.metric][1];
    source.textContent = "";
    if (read) return filters.sites.map((site) => ({ site, value: read(site) }));
    const made = makeUpAt(run, filters.sites, moment);
    source.textContent = makeUpNote(made, run, moment);
    return made.rows.map(({ site, high }) => ({ site, value: high }));
  }

  function draw(path = "") {
    const entries = entriesNow().filter((entry) => entry.value > 0);
    const tree = buildTree(entries, "all", options);
    chart.update(tree, !options.upward);
    table.update(functionRows(entries, options));
    details.replaceChildren();
    if (path) chart.open(path);
    else state.put("frame", "");
    const when = options.metric === "live" ? ` live at ${momentName(moment)}` : "";
    whole.replaceChildren("In all: ", options.metric === "count" ? number(tree.value) : size(tree.value), `${when} from ${count(entries.length)} sites`);
  }

  const metrics = Object.entries(METRICS).map(([id, [title]]) => [id, title]);
  const element = [h("h1", {}, "Flame graph"),
    h("div", { class: "controls", role: "group", "aria-label": "How it is drawn" },
      momentControl(run, (chosenMoment) => {
        moment = chosenMoment;
        draw();
      }),
      select("Show", metrics, options.metric, (value) => {
        options.metric = value;
        state.put("metric", value, "live");
        draw();
      }), shapeControls(options, () => draw())),
    filters.element,
    h("div", { class: "controls" }, searchField("Find frames", settled((term) => {
      state.put("find", term);
      chart.search(term);
    }), "part of a function's name", state.get("find")),
      h("button", { type: "button", onclick: () => chart.zoomOut() }, "Show all"), chart.found),
    whole, source, chart.element, details,
    h("h2", {}, "As a table"), table.element];
  queueMicrotask(() => {
    draw(state.get("frame"));
    if (state.get("find")) chart.search(state.get("find"));
  });
  return element;
}
