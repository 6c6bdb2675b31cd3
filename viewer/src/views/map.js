// The memory map: what lies where in the device's memory at a moment, and the holes between.

import { announce, h, onResize, select, size } from "../dom.js";
import { ABSENT, address, count, deviceName, plural, share, size as sizeText, time } from "../format.js";
import { LINE, drawLines } from "../map/draw.js";
import { TYPES, blockAfter, lineLength, linesOf, segmentsOf } from "../map/lines.js";
import { changesUntil, mapAfter } from "../map/past.js";
import { momentControl, momentName, momentOf } from "../moment.js";
import { ageColor, colorOf } from "../palette.js";
import { frameName } from "../model.js";
import { showSite, siteButton, swatch } from "../site.js";
import { state } from "../state.js";
import { BigTable, rowsNote } from "../table.js";
import { hideTip, showTip } from "../tip.js";

const COLORS = {
  category: ["category", (site) => site?.category ?? "other"],
  library: ["library", (site) => site?.library ?? "unknown"],
  phase: ["phase", (site) => site?.phase ?? "other"],
  site: ["site", (site) => site?.id ?? "unknown"],
};
const SORTS = {
  address: ["address", (a, b) => (a.device ?? 1e9) - (b.device ?? 1e9) || a.address - b.address],
  size: ["size", (a, b) => b.bytes - a.bytes],
  free: ["bytes free in it", (a, b) => b.free - a.free],
};

class Picture {
  constructor(run, onchange) {
    Object.assign(this, { run, onchange, blocks: null, lines: [], chosen: null });
    this.canvas = h("canvas", { "aria-hidden": "true" });
    this.space = h("div", { class: "map-space" });
    this.box = h("div", { class: "map-box", tabindex: "0", role: "application", "aria-roledescription": "memory map",
      "aria-label": "Memory map. Up and down arrows move between segments, left and right between blocks, Enter opens the block's site. The table below holds the same.",
      onscroll: () => this.draw(), onkeydown: (event) => this.key(event), onmousemove: (event) => this.hover(event),
      onmouseleave: hideTip, onclick: (event) => this.click(event) }, h("div", { class: "map-sticky" }, this.canvas), this.space);
    onResize(this.box, () => this.draw());
    document.addEventListener("themechange", () => this.box.isConnected && this.draw());
  }

  get labelWidth() {
    return this.box.clientWidth < 560 ? 132 : 300;
  }

  update(segments, blocks, { color, length, common }) {
    this.blocks = blocks;
    this.lines = linesOf(segments, this.blocks, length);
    this.longest = common ? Math.max(1, ...this.lines.filter((line) => !line.folded).map((line) => line.to - line.from)) : 0;
    this.colors = this.colorsBy(color);
    this.chosen = null;
    const height = this.lines.length * LINE;
    this.box.style.height = `${Math.min(560, Math.max(LINE * 2, height + 2))}px`;
    this.space.style.height = `${height}px`;
    this.draw();
  }

  colorsBy(color) {
    const { sites, end } = this.run;
    if (color === "age") return this.blocks.time_us.map((moment) => ageColor(Math.min(1, moment / 1e6 / (end || 1))));
    const bySite = sites.map((site) => colorOf(COLORS[color][1](site)));
    return this.blocks.site.map((index) => bySite[index] ?? colorOf("other"));
  }

  draw() {
    if (!this.blocks) return;
    const first = Math.floor(this.box.scrollTop / LINE);
    this.canvas.style.transform = `translateY(${first * LINE - this.box.scrollTop}px)`;
    this.canvas.style.height = `${this.box.clientHeight + LINE}px`;
    drawLines(this.canvas, { lines: this.lines, first, blocks: this.blocks, colors: this.colors, labelWidth: this.labelWidth,
      longest: this.longest, chosen: this.chosen });
  }

  /* {line, block, offset} under the pointer; block null for a hole. */
  at(event) {
    const box = this.box.getBoundingClientRect();
    const number = Math.floor((event.clientY - box.top + this.box.scrollTop) / LINE);
    const line = this.lines[number];
    if (!line) return null;
    const full = this.canvas.clientWidth - this.labelWidth - 2;
    const width = line.folded || !this.longest ? full : Math.max(2, (full * (line.to - line.from)) / this.longest);
    const x = event.clientX - box.left - this.labelWidth;
    if (x < 0 || x > width) return { line: number, block: null, offset: null };
    const offset = line.from + (x / width) * (line.to - line.from);
    const slack = (1.5 * (line.to - line.from)) / width;
    const block = blockAfter(this.blocks, line.first, line.last, offset - slack);
    return { line: number, offset, block: block < line.last && this.blocks.offset[block] <= offset + slack ? block : null };
  }

  siteOf(block) {
    return this.run.sites[this.blocks.site[block]];
  }

  /* A line or block in words. */
  words({ line, block, offset }) {
    const { segment } = this.lines[line];
    if (block === null) {
      const about = `${TYPES[segment.type] ?? segment.type} ${address(segment.address)}, ${sizeText(segment.bytes)}, ${share(segment.used, segment.bytes)} used${segment.pinned ? ", pinned by its blocks" : ""}`;
      return offset === null || offset === undefined ? [about] : [`hole of ${sizeText(this.holeAt(segment, offset))}`, about];
    }
    const site = this.siteOf(block);
    return [`${sizeText(this.blocks.bytes[block])} at ${address(segment.address + this.blocks.offset[block])}`,
      `${site?.category ?? "other"}, allocated at ${time(this.blocks.time_us[block] / 1e6)}`, site?.place ?? "unknown site"];
  }

  holeAt(segment, offset) {
    const next = blockAfter(this.blocks, segment.first, segment.last, offset);
    const end = next < segment.last ? this.blocks.offset[next] : segment.bytes;
    const begin = next > segment.first ? this.blocks.offset[next - 1] + this.blocks.bytes[next - 1] : 0;
    return end - begin;
  }

  hover(event) {
    const at = this.at(event);
    if (!at) return hideTip();
    const [title, ...rest] = this.words(at);
    const site = at.block === null ? null : this.siteOf(at.block);
    const frames = (site?.stack ?? []).slice(Math.max(0, site?.own ?? 0), Math.max(0, site?.own ?? 0) + 6);
    return showTip(event, [h("strong", {}, title), ...rest.map((line) => h("span", {}, line)),
      frames.length ? h("ol", { class: "tip-stack" }, frames.map((frame) => h("li", {}, frameName(frame)))) : null]);
  }

  choose(chosen, open) {
    this.chosen = chosen;
    this.draw();
    announce(this.words(chosen).join(", "));
    const site = chosen.block === null ? null : this.siteOf(chosen.block);
    if (open && site) showSite(site, this.run);
  }

  click(event) {
    const at = this.at(event);
    if (at) this.choose(at, true);
  }

  key(event) {
    const { chosen, lines } = this;
    const here = chosen ?? { line: 0, block: null };
    const line = lines[here.line];
    if (!line) return;
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15, Home: -1e9, End: 1e9 }[event.key];
    if (step) {
      const number = chosen ? Math.max(0, Math.min(lines.length - 1, here.line + step)) : 0;
      this.reveal(number);
      this.choose({ line: number, block: null }, false);
    } else if (event.key === "ArrowRight" || event.key === "ArrowLeft") {
      const next = here.block === null ? (event.key === "ArrowRight" ? line.first : line.last - 1) : here.block + (event.key === "ArrowRight" ? 1 : -1);
      if (next >= line.first && next < line.last) this.choose({ line: here.line, block: next }, false);
    } else if (event.key === "Enter") this.choose(here, true);
    else return;
    event.preventDefault();
  }

  reveal(number) {
    const top = number * LINE;
    if (top < this.box.scrollTop) this.box.scrollTop = top;
    else if (top + LINE > this.box.scrollTop + this.box.clientHeight) this.box.scrollTop = top + LINE - this.box.clientHeight;
  }
}

function segmentTable(run) {
  const bytes = (id, title, help) => ({ id, title, help, numeric: true, key: (row) => row[id], cell: (row) => size(row[id]) });
  return new BigTable({ label: "Segments", sort: "free", height: 420, columns: [
    { id: "address", title: "Address", width: "10rem", key: (row) => row.address, cell: (row) => h("code", {}, address(row.address)) },
    { id: "device", title: "Device", width: "6rem", key: (row) => row.device, cell: (row) => deviceName(row.device) },
    { id: "type", title: "Type", width: "15rem", key: (row) => row.type, cell: (row) => TYPES[row.type] ?? row.type },
    bytes("bytes", "Size"), bytes("used", "Used"), bytes("free", "Free"), bytes("largest", "Largest hole"),
    { id: "blocks", title: "Blocks", numeric: true, width: "6rem", key: (row) => row.last - row.first, cell: (row) => count(row.last - row.first) },
    { id: "pinned", title: "Pinned", width: "6rem", key: (row) => (row.pinned ? 1 : 0), cell: (row) => (row.pinned ? "pinned" : "no") },
    { id: "site", title: "Taken by", width: "20rem", key: (row) => run.sites[row.site]?.place, cell: (row) => (run.sites[row.site] ? siteButton(run.sites[row.site], run) : ABSENT) },
  ] });
}

const percent = (value) => (value === null ? ABSENT : `${value.toFixed(1)} %`);

function fragmentation(run) {
  const rows = run.document.fragmentation;
  if (!rows.length) return null;
  const pinners = rows.flatMap((row) => row.pinned_by.map((pin) => ({ ...pin, row, known: run.byId.get(pin.site) })));
  const table = new BigTable({ label: "Sites whose blocks pin holes", sort: "hole_bytes", height: 320, columns: [
    { id: "site", title: "Site", width: "22rem", key: (pin) => pin.known?.place, cell: (pin) => (pin.known ? siteButton(pin.known, run) : pin.site ?? ABSENT) },
    { id: "device", title: "Where", width: "10rem", key: (pin) => pin.row.device, cell: (pin) => `${deviceName(pin.row.device)}, ${pin.row.level}` },
    { id: "blocks", title: "Blocks", numeric: true, width: "6rem", key: (pin) => pin.blocks, cell: (pin) => count(pin.blocks) },
    { id: "bytes", title: "Bytes", numeric: true, key: (pin) => pin.bytes, cell: (pin) => size(pin.bytes) },
    { id: "hole_bytes", title: "Holes it keeps", numeric: true, width: "9rem", key: (pin) => pin.hole_bytes, cell: (pin) => size(pin.hole_bytes) }] });
  table.update(pinners);
  return [h("h2", {}, "Fragmentation"),
    h("ul", { class: "plain-list" }, rows.map((row) => h("li", {}, `${deviceName(row.device)}, ${row.level}: `, size(row.free_bytes), " of ", size(row.reserved_bytes),
      ` not used (${percent(row.percent)}), largest hole `, size(row.largest_free_bytes),
      row.at_peak ? [`; at its peak (${row.at_peak.time_s.toFixed(3)} s) `, size(row.at_peak.free_bytes), " of ", size(row.at_peak.reserved_bytes),
        ` not used (${percent(row.at_peak.percent)}), largest hole `, size(row.at_peak.largest_free_bytes), `, ${percent(row.at_peak.external_percent)} of it outside that`] : null))),
    pinners.length ? [h("h3", {}, "Who pins the holes"), table.element] : null];
}

function legend(run, blocks, color) {
  if (color === "age") return h("p", { class: "note" }, swatch(ageColor(0)), "allocated at the start ", swatch(ageColor(0.5)), "in the middle ", swatch(ageColor(1)), "at the end");
  if (color === "site") return null;
  const sums = new Map();
  blocks.site.forEach((index, i) => {
    const name = COLORS[color][1](run.sites[index]);
    sums.set(name, (sums.get(name) ?? 0) + blocks.bytes[i]);
  });
  return h("ul", { class: "map-legend" }, [...sums].sort((a, b) => b[1] - a[1]).map(([name, bytes]) => h("li", {}, swatch(colorOf(name)), `${name} `, size(bytes))));
}

/* {map, note}: what the page has of a moment; else the end, and a note that says so. */
function mapOf(run, moment) {
  const devices = run.devices.filter((device) => device !== null);
  const count = moment === "end" ? -1 : changesUntil(run, moment, devices[0] ?? 0);
  if (moment === "end") return { map: run.map, note: "", name: momentName(moment) };
  if (count >= 0) return { map: mapAfter(run, count), note: "", name: momentName(moment) };
  return { map: run.map, name: momentName("end"),
    note: `Which blocks lay where at ${momentName(moment)} is not recorded (${run.history?.reason ?? "there is no history of events"}), so the map shows the end. GPUMEMTRACE_EVENTS=all keeps every event.` };
}

/* How the map is drawn, as the address has it. */
const DRAWN = { color: "category", order: "address", device: "", type: "", line: "auto", scale: "" };

export function map(run) {
  const title = h("h1", {}, "Memory map");
  if (!run.map) return [title, h("p", { class: "note" }, "A document opened as JSON has no blocks; a page of gpumem-report html has."), fragmentation(run)];
  const options = Object.fromEntries(Object.entries(DRAWN).map(([name, value]) => [name, state.get(name, value)]));
  const picture = new Picture(run);
  const table = segmentTable(run);
  const lead = h("p", { class: "lead" });
  const source = h("p", { class: "note" });
  const note = h("p", { class: "note", role: "status" });
  const legendBox = h("div", {});
  const controls = h("div", { class: "controls", role: "group", "aria-label": "How it is drawn" });
  const content = h("div", {}, note, legendBox, picture.box, h("h2", {}, "As a table"), table.element);
  const empty = h("p", { class: "note" });
  const set = (name) => (value) => {
    options[name] = value;
    state.put(name, value, DRAWN[name]);
    draw();
  };

  function drawControls(all) {
    const devices = [...new Set(all.map((segment) => String(segment.device)))];
    const types = [...new Set(all.map((segment) => segment.type))];
    const lengths = [["auto", "automatic"], [0, "the whole segment"], ...[2, 32, 256, 2048].map((mib) => [mib * 2 ** 20, sizeText(mib * 2 ** 20)])];
    controls.replaceChildren(momentControl(run, () => draw()),
      select("Colour", [...Object.entries(COLORS).map(([id, [name]]) => [id, name]), ["age", "age"]], options.color, set("color")),
      select("Order", Object.entries(SORTS).map(([id, [name]]) => [id, name]), options.order, set("order")),
      devices.length > 1 ? select("Device", [["", "all"], ...devices.map((device) => [device, deviceName(device === "null" ? null : Number(device))])], options.device, set("device")) : "",
      types.length > 1 ? select("Type", [["", "all"], ...types.map((type) => [type, TYPES[type] ?? type])], options.type, set("type")) : "",
      select("A line is", lengths, options.line, set("line")),
      select("Scale", [["", "each line full width"], ["1", "one for all"]], options.scale, set("scale")));
  }

  function draw() {
    const shown = mapOf(run, momentOf(run));
    const all = segmentsOf(shown.map);
    const { blocks } = shown.map;
    lead.textContent = `Live memory at ${shown.name}, in order of address. Hatched is free; ▪ marks segments that live blocks keep from being given back.`;
    source.textContent = shown.note;
    drawControls(all);
    content.hidden = all.length === 0;
    empty.textContent = all.length ? "" : `No memory with an address was live at ${shown.name}.`;
    if (!all.length) return;
    const rows = all.filter((segment) => (!options.device || String(segment.device) === options.device) && (!options.type || segment.type === options.type))
      .sort((SORTS[options.order] ?? SORTS.address)[1]);
    const length = options.line === "auto" ? lineLength(rows) : Number(options.line);
    picture.update(rows, blocks, { color: options.color, common: options.scale === "1", length });
    table.update(rows);
    const sum = (key) => rows.reduce((total, row) => total + row[key], 0);
    note.replaceChildren(rowsNote(rows.length, all.length, "segments"), ", ", size(sum("bytes")), ", used ", size(sum("used")), ", holes ", size(sum("free")),
      ` (`, size(rows.reduce((total, row) => total + (row.pinned ? row.free : 0), 0)), ` in ${plural(rows.filter((row) => row.pinned).length, "pinned segment")})`,
      shown.map.omitted_blocks ? h("span", {}, `; ${count(shown.map.omitted_blocks)} smaller blocks (`, size(shown.map.omitted_bytes), ") are not drawn") : "",
      shown.map.unplaced_bytes ? h("span", {}, "; ", size(shown.map.unplaced_bytes), " more have no address (arrays, handles that are not mapped)") : "");
    legendBox.replaceChildren(...[legend(run, blocks, options.color)].filter(Boolean));
  }

  queueMicrotask(draw);
  return [title, lead, controls, source, empty, content, fragmentation(run)];
}
