// The stacked timeline: live memory of a level and device over time or over its events, in bands, on
// a canvas. Where the page has no events, from the sites' windows, which is hatched.

import { announce, h, onResize, size } from "../dom.js";
import { count, plural, share, size as sizeText, time } from "../format.js";
import { exactFrom } from "../makeup.js";
import { cssColor } from "../prefs.js";
import { hideTip, showTip } from "../tip.js";
import { upper } from "../history.js";
import { columnsOf, position, windowSamples } from "./columns.js";

/* Equal steps of 1, 2 or 5 times a power of ten, or of powers of two for bytes. */
function ticks(from, to, most, binary) {
  const span = Math.max(to - from, 1e-12);
  let step = binary ? 2 ** Math.ceil(Math.log2(span / most)) : 10 ** Math.floor(Math.log10(span / most));
  if (!binary) step *= [1, 2, 5, 10].find((factor) => span / (step * factor) <= most) ?? 10;
  const list = [];
  for (let i = Math.ceil(from / step); i * step <= to * (1 + 1e-12); i++) list.push(i * step);
  return list;
}

/* A CSS colour as a pixel of a canvas. */
function pixelOf(context, color) {
  context.fillStyle = color;
  const [red, green, blue] = [1, 3, 5].map((at) => Number.parseInt(context.fillStyle.slice(at, at + 2), 16));
  return (255 << 24) | (blue << 16) | (green << 8) | red;
}

const mix = (pixel, other) => ((pixel & 0xfefefe) >>> 1) + ((other & 0xfefefe) >>> 1) + 0xff000000;

export class StackChart {
  /**
   * `onmoment(moment)`: a click chose it; `onzoom([from, to] or null)`. `height` of the whole, in
   * pixels; a `still` chart cannot be zoomed.
   */
  constructor({ run, height, still = false, label, onmoment, onzoom = () => {} }) {
    Object.assign(this, { run, height, still, onmoment, onzoom, zoom: null, moment: null });
    this.canvas = h("canvas", { "aria-hidden": "true" });
    this.pin = h("div", { class: "stack-line stack-pin", hidden: true });
    this.line = h("div", { class: "stack-line", hidden: true });
    this.range = h("div", { class: "stack-range", hidden: true });
    this.plot = h("div", { class: "stack-plot" }, this.range, this.line, this.pin);
    this.element = h("div", { class: "stack-chart", tabindex: "0", role: "application", "aria-roledescription": "stacked timeline", "aria-label": label,
      style: { height: `${height}px` }, onkeydown: (event) => this.key(event) }, this.canvas, this.plot);
    this.plot.addEventListener("pointermove", (event) => this.moved(event));
    this.plot.addEventListener("pointerdown", (event) => this.pressed(event));
    this.plot.addEventListener("pointerup", (event) => this.released(event));
    this.plot.addEventListener("pointercancel", () => this.dragged(null));
    this.plot.addEventListener("pointerleave", () => this.left());
    this.plot.addEventListener("dblclick", () => this.setZoom(null));
    this.plot.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    onResize(this.element, () => this.draw());
    document.addEventListener("themechange", () => this.element.isConnected && this.draw());
  }

  /**
   * Shows the `bands` of `sites`: those of `lane`, null without a history; `total` is the document's
   * line of the same sum, or null; `peakAt` its peak in seconds; `events` what else happened; `spans`
   * stretches of time to be marked, {from, to, label}.
   */
  update({ lane, bands, sites, total, peakAt, events, spans = [], axis, zoom, moment, sampleName }) {
    Object.assign(this, { lane, bands, sites, total, peakAt, events, spans, axis: lane ? axis : "time", zoom, moment, sampleName });
    this.windows = this.exactFrom > 0 && bands.ofSite ? windowSamples(sites, bands, this.run.end, peakAt) : { samples: [], peak: null };
    this.draw();
  }

  /** Before this moment the bands are those of the windows. */
  get exactFrom() {
    return this.lane ? (this.run.history.complete ? 0 : exactFrom(this.run)) : Infinity;
  }

  get whole() {
    return this.axis === "event" ? [0, Math.max(1, this.lane.length - 1)] : [0, this.run.end || 1e-6];
  }

  get span() {
    const [from, to] = this.whole;
    return this.zoom ? [Math.max(from, this.zoom[0]), Math.min(to, this.zoom[1])] : [from, to];
  }

  setZoom(zoom) {
    if (this.still) return;
    const [from, to] = this.whole;
    if (zoom) {
      const width = Math.min(to - from, Math.max(zoom[1] - zoom[0], this.axis === "event" ? 4 : (to - from) * 1e-9));
      const low = Math.max(from, Math.min(zoom[0], to - width));
      zoom = width >= (to - from) * 0.999 ? null : [low, low + width];
    }
    this.zoom = zoom;
    this.draw();
    this.onzoom(zoom);
  }

  /** Shows `factor` times as much, around the moment if it is in sight. */
  zoomBy(factor, around) {
    const [from, to] = this.span;
    const pinned = this.placeOf(this.moment);
    const middle = around ?? (pinned > from && pinned < to ? pinned : (from + to) / 2);
    this.setZoom([middle - (middle - from) * factor, middle + (to - middle) * factor]);
  }

  /* ---- drawing ---- */

  layout() {
    const width = this.element.clientWidth;
    this.inset = width < 560 ? 66 : 84;
    this.bottom = 24;
    this.top = 20;
    this.width = Math.max(40, width - this.inset - 12);
    this.tall = this.height - this.top - this.bottom;
    Object.assign(this.plot.style, { left: `${this.inset}px`, top: `${this.top}px`, width: `${this.width}px`, height: `${this.tall}px` });
  }

  draw() {
    if (!this.bands || !this.element.clientWidth) return;
    this.layout();
    const ratio = devicePixelRatio || 1;
    const { canvas } = this;
    canvas.width = Math.round(this.element.clientWidth * ratio);
    canvas.height = Math.round(this.height * ratio);
    this.context = canvas.getContext("2d");
    this.context.clearRect(0, 0, canvas.width, canvas.height);
    this.columns = this.makeColumns(Math.round(this.width * ratio));
    this.highest = Math.max(1, this.columns.totals.reduce((most, one) => Math.max(most, one), 0), ...this.totalsInSight()) * 1.06;
    this.paint(ratio);
    this.drawAxes(ratio);
    this.drawTotal(ratio);
    this.drawSpans(ratio);
    this.drawEvents(ratio);
    this.place(this.pin, this.placeOf(this.moment));
  }

  makeColumns(width) {
    const [from, to] = this.span;
    const { lane, bands, axis } = this;
    const columns = lane ? columnsOf({ lane, bands, from, to, width, axis })
      : { values: new Float64Array(width * bands.count), totals: new Float64Array(width), at: new Int32Array(width).fill(-1), changes: new Int32Array(width) };
    columns.sample = new Array(width).fill(null);
    if (axis !== "time") return columns;
    const step = (to - from) / width;
    const { samples, peak } = this.windows;
    const limit = this.exactFrom;
    let next = 0;
    for (let column = 0; column < width && from + column * step < limit; column++) {
      const begin = from + column * step;
      while (next < samples.length && samples[next].to <= begin) next++;
      let sample = samples[next] && samples[next].from <= begin + step ? samples[next] : null;
      if (peak && peak.moment >= begin - step && peak.moment < begin + 2 * step) sample = peak;
      if (!sample) continue;
      columns.sample[column] = sample;
      columns.values.set(sample.values, column * bands.count);
      columns.totals[column] = sample.values.reduce((sum, one) => sum + one, 0);
      columns.at[column] = -1;
    }
    return columns;
  }

  totalsInSight() {
    const [from, to] = this.span;
    if (!this.total || this.axis !== "time" || this.exactFrom <= from) return [0];
    const { max, start_s: start, width_s: width } = this.total;
    return max.filter((_, i) => start + (i + 1) * width >= from && start + i * width <= to).map((one) => one ?? 0);
  }

  /* The bands, pixel by pixel: a picture of ten thousand columns costs as much as one of a hundred. */
  paint(ratio) {
    const { context, columns, bands, highest } = this;
    const width = columns.totals.length;
    const height = Math.round(this.tall * ratio);
    const image = context.createImageData(width, height);
    const pixels = new Uint32Array(image.data.buffer);
    const surface = pixelOf(context, cssColor("--surface"));
    const colors = bands.colors.map((color) => pixelOf(context, color) >>> 0);
    const pale = colors.map((color) => mix(color, surface) >>> 0);
    const scale = height / highest;
    for (let column = 0; column < width; column++) {
      const rough = columns.sample[column] !== null;
      let sum = 0;
      let y = height;
      for (let band = 0; band < bands.count; band++) {
        const value = columns.values[column * bands.count + band];
        if (value <= 0) continue;
        sum += value;
        const top = Math.max(0, Math.round(height - sum * scale));
        for (; y > top; y--) {
          const at = (y - 1) * width + column;
          pixels[at] = rough && (column + y) % (8 * ratio) < 2 * ratio ? pale[band] : colors[band];
        }
        if (y < height && top < height - 1 && y > 0) pixels[y * width + column] = mix(colors[band], surface) >>> 0;
      }
    }
    context.putImageData(image, Math.round(this.inset * ratio), Math.round(this.top * ratio));
  }

  drawAxes(ratio) {
    const { context, inset: left, top, width, tall } = this;
    const [from, to] = this.span;
    context.save();
    context.scale(ratio, ratio);
    context.font = "12px system-ui, sans-serif";
    context.strokeStyle = cssColor("--grid");
    context.fillStyle = cssColor("--muted");
    context.textBaseline = "middle";
    context.textAlign = "right";
    context.globalAlpha = 1;
    for (const value of ticks(0, this.highest, 5, true)) {
      const y = top + tall - (value / this.highest) * tall;
      context.fillText(value === 0 ? "0" : sizeText(value), left - 8, y);
      context.globalAlpha = 0.6;
      context.fillRect(left - 4, y, 4, 1);
      context.globalAlpha = 1;
    }
    context.textAlign = "center";
    context.textBaseline = "top";
    for (const value of ticks(from, to, Math.max(2, Math.floor(width / 110)), false)) {
      const x = left + ((value - from) / (to - from)) * width;
      context.fillRect(x, top + tall, 1, 4);
      const text = value === 0 ? "0" : this.axis === "event" ? count(value) : this.tickText(value, to - from);
      context.fillText(text, Math.min(Math.max(x, left + 10), left + width - 22), top + tall + 7);
    }
    context.strokeStyle = cssColor("--line");
    context.strokeRect(left - 0.5, top - 0.5, width + 1, tall + 1);
    context.restore();
  }

  /* More digits where little is in sight. */
  tickText(value, span) {
    if (span > 1e-3 * Math.abs(value)) return time(value);
    return `${value.toFixed(Math.min(9, Math.max(0, Math.ceil(2 - Math.log10(span)))))} s`;
  }

  x(place) {
    const [from, to] = this.span;
    return ((place - from) / (to - from)) * this.width;
  }

  /* The document's line of the whole, where the bands are those of windows. */
  drawTotal(ratio) {
    const { context, total, inset: left, top, tall, width } = this;
    if (!total || this.axis !== "time" || this.exactFrom <= this.span[0]) return;
    context.save();
    context.scale(ratio, ratio);
    context.beginPath();
    context.rect(left, top, width, tall);
    context.clip();
    context.strokeStyle = cssColor("--text");
    context.lineWidth = 1.25;
    context.beginPath();
    total.max.forEach((value, i) => {
      const begin = total.start_s + i * total.width_s;
      if (value === null || begin > this.exactFrom) return;
      const y = top + tall - (value / this.highest) * tall;
      context.lineTo(left + this.x(begin), y);
      context.lineTo(left + this.x(begin + total.width_s), y);
    });
    context.stroke();
    context.restore();
  }

  drawSpans(ratio) {
    const { context, inset: left, top, width, tall } = this;
    context.save();
    context.scale(ratio, ratio);
    context.font = "11px system-ui, sans-serif";
    context.fillStyle = context.strokeStyle = cssColor("--accent");
    this.spans.forEach(({ from, to, label }, i) => {
      const begin = Math.max(0, this.x(this.placeOf(from)));
      const end = Math.min(width, Math.max(begin + 2, this.x(this.placeOf(to))));
      if (end <= 0 || begin >= width) return;
      context.globalAlpha = 0.16;
      context.fillRect(left + begin, top, end - begin, tall);
      context.globalAlpha = 1;
      context.strokeRect(left + begin + 0.5, top + 0.5, Math.max(0, end - begin - 1), tall - 1);
      context.fillText(label, Math.min(left + begin + 4, left + width - context.measureText(label).width), top + 14 + 14 * i);
    });
    context.restore();
  }

  drawEvents(ratio) {
    const { context, inset: left, top, width, tall } = this;
    const taken = [];
    context.save();
    context.scale(ratio, ratio);
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "alphabetic";
    for (const event of [...this.events].sort((a, b) => (a.kind === "oom" ? 0 : 1) - (b.kind === "oom" ? 0 : 1))) {
      const x = this.x(this.placeOf(event.time));
      if (x < 0 || x > width) continue;
      context.fillStyle = cssColor(event.color);
      const short = event.kind === "failure" ? 8 : tall;
      context.globalAlpha = event.kind === "mark" ? 0.5 : 1;
      context.fillRect(left + x, top + tall - short, event.kind === "oom" ? 2 : 1, short);
      context.globalAlpha = 1;
      const room = context.measureText(event.label).width;
      const at = Math.min(left + x, left + width - room);
      if (event.kind === "failure" || taken.some(([low, high]) => at < high + 8 && at + room > low - 8)) continue;
      taken.push([at, at + room]);
      context.fillText(event.label, at, top - 6);
    }
    context.restore();
  }

  place(line, at) {
    const x = at === null ? -1 : this.x(at);
    line.hidden = !(x >= -1 && x <= this.width + 1);
    line.style.transform = `translateX(${Math.max(0, Math.min(this.width, x))}px)`;
  }

  /* ---- moments and places ---- */

  /** Where a moment is on the axis, in its unit; null for none. */
  placeOf(moment) {
    if (moment === null || moment === undefined) return null;
    const { lane, axis } = this;
    if (axis === "event") {
      const i = moment === "peak" ? lane.peak : moment === "end" ? lane.length - 1
        : moment === "work" ? upper(lane.at, this.run.past.workEnd - 1) - 1 : lane.until(moment) - 1;
      return Math.max(0, i);
    }
    if (moment === "end") return this.run.end;
    if (moment === "peak") return lane && this.run.history.complete ? (lane.peak < 0 ? null : lane.times[lane.peak]) : this.peakAt ?? null;
    if (moment === "work") {
      const end = this.run.past?.workEnd ?? -1;
      return end > 0 ? this.run.past.times[end - 1] : this.run.end;
    }
    return moment;
  }

  columnAt(event) {
    const box = this.plot.getBoundingClientRect();
    const x = Math.max(0, Math.min(box.width - 1e-6, event.clientX - box.left));
    const y = event.clientY - box.top;
    const column = Math.min(this.columns.totals.length - 1, Math.floor((x / box.width) * this.columns.totals.length));
    return { x, column, value: ((this.tall - y) / this.tall) * this.highest };
  }

  /* The moment that a column shows. */
  momentOf(column, x) {
    const at = this.columns.at[column];
    if (this.columns.sample[column] && this.columns.sample[column] === this.windows.peak) return "peak";
    if (at >= 0 && this.columns.changes[column]) return this.lane.times[at];
    if (this.axis === "event") return this.lane.times[Math.max(0, at)];
    const [from, to] = this.span;
    return from + (x / this.width) * (to - from);
  }

  bandAt(column, value) {
    let sum = 0;
    for (let band = 0; band < this.bands.count; band++) {
      sum += this.columns.values[column * this.bands.count + band];
      if (value >= 0 && value < sum) return band;
    }
    return -1;
  }

  /* ---- what the reader does ---- */

  words(column, x, value) {
    const { bands, columns } = this;
    const total = columns.totals[column];
    const band = this.bandAt(column, value);
    const bytes = band < 0 ? null : columns.values[column * bands.count + band];
    const sample = columns.sample[column];
    const changes = columns.changes[column];
    const moment = this.momentOf(column, x);
    if (sample && sample !== this.windows.peak) return this.windowWords(sample, band);
    return [band < 0 ? null : h("strong", {}, h("span", { class: "swatch", style: { background: bands.colors[band] } }), bands.names[band]),
      band < 0 ? null : h("span", {}, size(bytes), ` · ${share(bytes, total)}`),
      h("span", {}, "all bands: ", size(total)),
      h("span", { class: "muted" }, moment === "peak" ? "at the peak" : `at ${time(moment)}`, columns.at[column] >= 0 && !sample ? `, event ${count(columns.at[column])}` : "",
        changes > 1 ? `: the highest of ${count(changes)} events here` : "")];
  }

  /* Of a window only the least and the most of each site are known. */
  windowWords({ from, to, values, tops }, band) {
    const { bands } = this;
    return [band < 0 ? null : h("strong", {}, h("span", { class: "swatch", style: { background: bands.colors[band] } }), bands.names[band]),
      band < 0 ? null : h("span", {}, size(values[band]), " to ", size(tops[band])),
      h("span", {}, "all bands: at least ", size(values.reduce((sum, one) => sum + one, 0))),
      h("span", { class: "muted" }, `between ${time(from)} and ${time(to)}, the window that the file keeps`)];
  }

  moved(event) {
    if (!this.columns) return;
    const { x, column, value } = this.columnAt(event);
    if (this.from !== undefined && !this.still) this.dragged(x);
    this.line.hidden = false;
    this.line.style.transform = `translateX(${x}px)`;
    showTip(event, this.words(column, x, value));
  }

  left() {
    this.line.hidden = true;
    hideTip();
  }

  pressed(event) {
    if (event.button !== 0 || !this.columns) return;
    this.from = this.columnAt(event).x;
    try {
      this.plot.setPointerCapture(event.pointerId);
    } catch {
      // A pointer that is gone already cannot be captured.
    }
  }

  dragged(x) {
    if (x === null) this.from = undefined;
    const wide = x !== null && Math.abs(x - this.from) > 5;
    this.range.hidden = !wide;
    if (wide) Object.assign(this.range.style, { left: `${Math.min(x, this.from)}px`, width: `${Math.abs(x - this.from)}px` });
  }

  released(event) {
    if (this.from === undefined) return;
    const { x, column } = this.columnAt(event);
    const begin = this.from;
    this.dragged(null);
    if (Math.abs(x - begin) > 5 && !this.still) {
      const [from, to] = this.span;
      const at = (one) => from + (one / this.width) * (to - from);
      this.setZoom([at(Math.min(x, begin)), at(Math.max(x, begin))]);
    } else this.choose(this.momentOf(column, x));
  }

  wheel(event) {
    if (this.still || !(event.ctrlKey || event.metaKey || event.shiftKey)) return;
    event.preventDefault();
    const [from, to] = this.span;
    const { x } = this.columnAt(event);
    this.zoomBy((event.deltaY || event.deltaX) > 0 ? 1.25 : 0.8, from + (x / this.width) * (to - from));
  }

  choose(moment) {
    this.moment = moment;
    this.place(this.pin, this.placeOf(moment));
    this.onmoment(moment);
  }

  /** Goes some changes on, or a part of what is in sight. */
  step(changes, part) {
    const [from, to] = this.span;
    const here = this.placeOf(this.moment) ?? to;
    if (!this.lane || part) return this.choose(Math.max(0, this.axis === "event" ? this.lane.times[Math.max(0, Math.min(this.lane.length - 1, Math.round(here + part * (to - from))))] : here + (part || changes * 0.01) * (to - from)));
    const i = Math.max(0, Math.min(this.lane.length - 1, (this.axis === "event" ? here : this.lane.until(here) - 1) + changes));
    return this.choose(this.lane.times[i]);
  }

  key(event) {
    const moves = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], PageDown: [0, 0.1], PageUp: [0, -0.1] };
    if (moves[event.key]) this.step(...moves[event.key]);
    else if (event.key === "Home") this.choose(this.lane ? this.lane.times[this.lane.start] ?? 0 : 0);
    else if (event.key === "End") this.choose("end");
    else if (event.key === "+" || event.key === "=") this.zoomBy(0.5);
    else if (event.key === "-") this.zoomBy(2);
    else if (event.key === "Escape" || event.key === "0") this.setZoom(null);
    else return;
    event.preventDefault();
    const place = this.placeOf(this.moment);
    const [from, to] = this.span;
    const column = Math.max(0, Math.min(this.columns.totals.length - 1, Math.floor(((place - from) / (to - from)) * this.columns.totals.length)));
    announce(`${typeof this.moment === "number" ? time(this.moment) : this.moment}: ${sizeText(this.columns.totals[column])}`);
  }
}

/** What the picture of a run's level is drawn from, in words. */
export function sourceNote(run, lane) {
  const { history } = run;
  if (!lane) return `No history of events (${history?.reason ?? "a document opened as JSON has none"}), so the bands are drawn from the ${plural(Math.max(0, ...run.sites.map((site) => site.windows?.length ?? 0)), "window")} that each site keeps: what it held at least in each, and at the peak. What lies between them and the line is known as a whole only. GPUMEMTRACE_EVENTS=all keeps every event.`;
  if (history.complete && history.thinned) return `${count(history.changes)} events, of which the page holds ${count(history.dt_ns.length)}: the moments at which each stretch was highest and lowest, with all that lived from one to the next. gpumem-report html --at TIME shows any other.`;
  if (history.complete) return `From every event: each pixel shows its highest moment.`;
  return `Complete from ${time(history.from_s)} on; before that (${history.reason}) the bands are drawn from the sites' windows, which is hatched: what each held at least, and at the peak. What lies between them and the line is known as a whole only. GPUMEMTRACE_EVENTS=all keeps every event.`;
}
