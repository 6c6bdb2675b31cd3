// The chart of totals: uPlot, with steps from minimum to maximum for each stretch of time, and lines
// for what happened.

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { onResize } from "./dom.js";
import { size, time } from "./format.js";
import { cssColor } from "./prefs.js";
import { seriesStyle } from "./palette.js";

const BINARY = Array.from({ length: 52 }, (_, i) => 2 ** i);

/* One line of the document as uPlot's x, highest, lowest; the last stretch is closed by a point. */
function columns(line) {
  const n = line.max.length;
  const x = Array.from({ length: n + 1 }, (_, i) => line.start_s + i * line.width_s);
  return [x, [...line.max, line.max[n - 1] ?? null], [...line.min, line.min[n - 1] ?? null]];
}

function seriesOf(lines) {
  const stepped = uPlot.paths.stepped({ align: 1 });
  return lines.flatMap((line) => {
    const { color, name, dash } = seriesStyle(line.series);
    const common = { scale: "y", spanGaps: true, paths: stepped, points: { show: false } };
    return [{ ...common, label: name, stroke: color, width: 2, dash }, { ...common, label: `${name}, lowest`, stroke: color, width: 0 }];
  });
}

/* A name beside its line, on the first of three rows that has room there. */
function drawLabel({ ctx, bbox }, text, x, ratio, rows) {
  const width = ctx.measureText(text).width;
  const left = x + 4 * ratio + width > bbox.left + bbox.width ? x - 4 * ratio - width : x + 4 * ratio;
  const right = left + width + 8 * ratio;
  const row = rows.findIndex((taken) => taken.every(([from, to]) => right < from || left > to));
  if (row < 0) return;
  ctx.fillText(text, left, bbox.top + (11 + 14 * row) * ratio);
  rows[row].push([left, right]);
}

/* What is named first where names crowd: running out of memory, then the program's own marks. */
const importance = (event) => (event.kind === "oom" ? 0 : ["snapshot", "signal"].includes(event.label) ? 2 : 1);

function drawEvents(chart, events, moment) {
  const { ctx, bbox } = chart;
  const ratio = devicePixelRatio || 1;
  ctx.save();
  ctx.font = `${11 * ratio}px system-ui, sans-serif`;
  ctx.textAlign = "left";
  ctx.textBaseline = "alphabetic";
  const rows = [[], [], []];
  for (const event of [...events].sort((a, b) => importance(a) - importance(b))) {
    const x = Math.round(chart.valToPos(event.time, "x", true));
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.strokeStyle = ctx.fillStyle = cssColor(event.color);
    ctx.lineWidth = ratio;
    ctx.setLineDash(event.kind === "mark" ? [3 * ratio, 3 * ratio] : []);
    ctx.beginPath();
    ctx.moveTo(x, event.kind === "failure" ? bbox.top + bbox.height - 9 * ratio : bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    if (event.kind !== "failure") drawLabel(chart, event.label, x, ratio, rows);
  }
  if (moment !== null) {
    const x = Math.round(chart.valToPos(moment, "x", true));
    ctx.setLineDash([]);
    ctx.strokeStyle = cssColor("--accent");
    ctx.lineWidth = 2 * ratio;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}

export class TimeChart {
  /** `onmoment(seconds)`: a moment was chosen; `onhover(seconds or null)`. */
  constructor(box, { onmoment, onhover }) {
    Object.assign(this, { box, onmoment, onhover, moment: null });
    onResize(box, () => this.chart?.setSize({ width: box.clientWidth, height: this.height }));
    document.addEventListener("themechange", () => this.lines && box.isConnected && this.update(this.lines, this.events, this.end));
  }

  get height() {
    return this.box.clientWidth < 560 ? 280 : 360;
  }

  update(lines, events, end) {
    const zoom = this.chart && this.end === end ? { ...this.range } : null;
    Object.assign(this, { lines, events, end });
    this.chart?.destroy();
    this.chart = null;
    const data = lines.length ? uPlot.join(lines.map(columns)) : [[0, end], [null, null]];
    const grid = { stroke: cssColor("--grid"), width: 1 };
    const axis = { stroke: cssColor("--muted"), font: "12px system-ui, sans-serif", grid, ticks: grid };
    this.chart = new uPlot({
      width: this.box.clientWidth, height: this.height,
      legend: { show: false },
      padding: [8, 36, 0, 0],
      cursor: { y: false, drag: { x: true, y: false, dist: 6 }, points: { show: false } },
      scales: { x: { time: false, range: (_, low, high) => [low ?? 0, high ?? end] }, y: { range: (_, low, high) => [0, (high || 1) * 1.15] } },
      axes: [
        { ...axis, values: (_, splits) => splits.map((value) => (value === 0 ? "0" : time(value))), space: 80 },
        { ...axis, values: (_, splits) => splits.map((value) => (value === 0 ? "0" : size(value))), incrs: BINARY, size: 84 },
      ],
      series: [{}, ...(lines.length ? seriesOf(lines) : [{}])],
      bands: lines.map((line, i) => ({ series: [2 * i + 1, 2 * i + 2], fill: `${seriesStyle(line.series).color}33` })),
      hooks: {
        draw: [(chart) => drawEvents(chart, this.events, this.moment)],
        setCursor: [(chart) => this.onhover(chart.cursor.left >= 0 ? chart.posToVal(chart.cursor.left, "x") : null)],
      },
    }, data, this.box);
    this.chart.over.addEventListener("click", (event) => {
      if (this.chart.select.width > 1) return;
      const left = event.clientX - this.chart.over.getBoundingClientRect().left;
      this.onmoment(this.chart.posToVal(left, "x"));
    });
    this.chart.setScale("x", zoom ?? { min: 0, max: end });
  }

  get range() {
    const { min, max } = this.chart.scales.x;
    return { min: min ?? 0, max: max ?? this.end };
  }

  setMoment(moment) {
    this.moment = moment;
    this.chart?.redraw(false);
  }

  /** Shows a stretch of time; null: all. */
  setRange(range) {
    const [min, max] = range ?? [0, this.end];
    this.chart?.setScale("x", { min, max });
  }
}
