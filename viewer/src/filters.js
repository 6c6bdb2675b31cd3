// Which sites a view shows: the same controls and the same meaning in every view.

import { h, searchField, select, settled } from "./dom.js";
import { deviceName } from "./format.js";
import { state } from "./state.js";

const FIELDS = [
  ["device", "Device", (site) => String(site.device), (value) => deviceName(value === "null" ? null : Number(value))],
  ["kind", "Kind", (site) => site.kind],
  ["library", "Library", (site) => site.library ?? "unknown"],
  ["category", "Category", (site) => site.category ?? "other"],
  ["verdict", "Verdict", (site) => site.verdict],
];

const haystacks = new WeakMap();

/** Everything of a site that a search looks at, in lower case. */
export function haystack(site) {
  let text = haystacks.get(site);
  if (text === undefined) {
    const frames = site.stack.map((frame) => `${frame.function ?? ""} ${frame.file ?? ""} ${frame.module ?? ""}`);
    text = [site.id, site.place, site.kind, site.library, site.category, site.phase, site.function, ...frames].join("\n").toLowerCase();
    haystacks.set(site, text);
  }
  return text;
}

export class Filters {
  /** `fields`: ids of FIELDS; `level`: "one" keeps levels apart, since blocks lie in driver memory. */
  constructor(run, { fields = ["device", "kind", "library", "category"], level = "any", search = true, onchange }) {
    this.run = run;
    this.fields = FIELDS.filter(([id]) => fields.includes(id));
    this.values = Object.fromEntries(this.fields.map(([id]) => [id, state.get(id)]));
    this.text = search ? state.get("q").toLowerCase() : "";
    this.mainLevel = level === "one" ? run.mainLevel : "";
    this.level = run.levels.includes(state.get("level")) ? state.get("level") : this.mainLevel;
    this.onchange = onchange;
    this.element = h("div", { class: "controls", role: "group", "aria-label": "Filter" },
      this.levelControl(level), this.fields.map((field) => this.control(field)),
      search ? searchField("Search", settled((text) => this.search(text)), "function, file, library …", state.get("q")) : null);
  }

  set(name, value) {
    if (name === "level") this.level = value;
    else this.values[name] = value;
    state.put(name, value, name === "level" ? this.mainLevel : "");
    this.onchange();
  }

  search(text) {
    this.text = text.toLowerCase();
    state.put("q", text);
    this.onchange();
  }

  levelControl(mode) {
    const { levels } = this.run;
    if (levels.length < 2) return null;
    const names = { driver: "driver (CUDA)", torch: "PyTorch's blocks", custom: "program's own pools" };
    const options = [...(mode === "one" ? [] : [["", "all"]]), ...levels.map((level) => [level, names[level]])];
    return select("Level", options, this.level, (value) => this.set("level", value));
  }

  control([id, title, read, show = (value) => value]) {
    const options = [...new Set(this.run.sites.map(read))].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
    if (options.length < 2) return null;
    return select(title, [["", "all"], ...options.map((value) => [value, show(value)])], this.values[id], (value) => this.set(id, value));
  }

  matches(site) {
    if (this.level && site.level !== this.level) return false;
    for (const [id, , read] of this.fields) if (this.values[id] && read(site) !== this.values[id]) return false;
    return !this.text || haystack(site).includes(this.text);
  }

  get sites() {
    return this.run.sites.filter((site) => this.matches(site));
  }
}
