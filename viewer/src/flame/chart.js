// A flame graph on the page: d3-flame-graph, with a tooltip, search and keys.

import flamegraph from "d3-flame-graph";
import { select } from "d3-selection";
import { announce, h, onResize } from "../dom.js";
import { share } from "../format.js";
import { framePlace } from "../model.js";
import { hideTip, showTip } from "../tip.js";

const CELL = 20;

const depthOf = (node) => 1 + Math.max(0, ...node.children.map(depthOf));

const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

export class FlameChart {
  /** `show(value, node)`: the figure in words; `color(node)`: of a frame. */
  constructor({ label, show, color, onselect }) {
    Object.assign(this, { label, show, color, onselect });
    this.term = "";
    this.found = h("span", { class: "note", role: "status" });
    this.box = h("div", { class: "flame", onkeydown: (event) => this.key(event), onfocusin: (event) => this.focused(event) });
    this.element = h("div", { class: "flame-frame" }, this.box);
    onResize(this.element, () => this.tree && this.element.clientWidth !== this.drawnWidth && this.draw());
  }

  update(tree, inverted) {
    this.tree = tree;
    this.inverted = inverted;
    this.draw();
  }

  describe(d) {
    return `${d.data.name}: ${this.show(d.data)}, ${share(d.data.value, this.tree.value)}`;
  }

  draw() {
    hideTip();
    this.drawnWidth = this.element.clientWidth;
    this.box.replaceChildren();
    if (!this.tree.value) {
      this.box.append(h("p", { class: "note" }, "No bytes to show with these filters."));
      return;
    }
    const tip = () => {};
    tip.show = (event, d) => showTip(event, [h("strong", {}, d.data.name), h("span", {}, `${this.show(d.data)} · ${share(d.data.value, this.tree.value)}`),
      d.data.frame ? h("span", { class: "muted" }, framePlace(d.data.frame)) : null]);
    tip.hide = hideTip;
    this.chart = flamegraph().width(Math.max(240, this.element.clientWidth - 2)).cellHeight(CELL).minFrameSize(2)
      .height(depthOf(this.tree) * CELL)
      .transitionDuration(calm() ? 0 : 200).inverted(this.inverted).tooltip(tip)
      .sort((a, b) => b.data.value - a.data.value)
      .setColorMapper((d) => (d.highlight ? "var(--found)" : this.color(d.data)))
      .setSearchMatch((d, term) => Boolean(term) && d.data.name.toLowerCase().includes(term.toLowerCase()))
      .setSearchHandler((results, sum) => this.report(results.length, sum))
      .onClick((d) => this.clicked(d));
    select(this.box).datum(this.tree).call(this.chart);
    const svg = this.box.querySelector("svg");
    svg.setAttribute("role", "tree");
    svg.setAttribute("aria-label", `${this.label}. Arrow keys move between frames, Enter magnifies one, Escape shows all.`);
    if (this.term) this.chart.search(this.term);
    this.dress();
  }

  report(frames, sum) {
    this.found.textContent = this.term ? `“${this.term}”: ${frames} frames, ${this.show({ value: sum, before: null })}, ${share(sum, this.tree.value)}` : "";
  }

  search(term) {
    this.term = term;
    if (!this.chart || !this.tree?.value) return;
    if (term) this.chart.search(term);
    else {
      this.chart.clear();
      this.report(0, 0);
    }
    this.dress();
  }

  /* What screen readers and keys need on each frame; the current one can be tabbed to. */
  dress() {
    for (const group of this.box.querySelectorAll("g.frame")) {
      group.setAttribute("role", "treeitem");
      group.setAttribute("aria-level", group.__data__.depth + 1);
      group.setAttribute("aria-label", this.describe(group.__data__));
      group.setAttribute("tabindex", group.__data__.depth === 0 ? "0" : "-1");
    }
  }

  /* Where a node is: the number of each of its ancestors and itself among their siblings. */
  pathOf(d) {
    const numbers = [];
    for (let at = d; at.parent; at = at.parent) numbers.unshift(at.parent.children.indexOf(at));
    return numbers.join(".");
  }

  /** Magnifies the node at a path as `onselect` gave it; one that is not there is passed over. */
  open(path) {
    let at = select(this.box.querySelector("svg")).datum();
    for (const number of path.split(".")) at = at?.children?.[Number(number)];
    if (at) this.chart.zoomTo(at);
  }

  clicked(d) {
    this.onselect?.(d.data, this.pathOf(d));
    this.dress();
    announce(`shown whole: ${this.describe(d)}`);
  }

  zoomOut() {
    if (this.chart && this.tree.value) this.chart.resetZoom();
  }

  focused(event) {
    const d = event.target.__data__;
    if (!d?.data) return;
    for (const group of this.box.querySelectorAll("g.frame[tabindex='0']")) group.setAttribute("tabindex", "-1");
    event.target.setAttribute("tabindex", "0");
  }

  key(event) {
    const d = event.target.__data__;
    if (!d?.data) return;
    const drawn = (node) => node && [...this.box.querySelectorAll("g.frame")].find((group) => group.__data__ === node);
    const siblings = d.parent?.children ?? [d];
    const at = siblings.indexOf(d);
    const [up, down] = this.inverted ? [d.parent, d.children?.[0]] : [d.children?.[0], d.parent];
    const target = { ArrowUp: up, ArrowDown: down, ArrowLeft: siblings[at - 1], ArrowRight: siblings[at + 1] }[event.key];
    if (event.key === "Enter" || event.key === " ") this.chart.zoomTo(d);
    else if (event.key === "Escape") this.zoomOut();
    else if (!event.key.startsWith("Arrow")) return;
    else drawn(target)?.focus();
    event.preventDefault();
  }
}
