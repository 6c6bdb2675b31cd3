// Drawing lines of the memory map on a canvas.

import { address, share, size } from "../format.js";
import { cssColor } from "../prefs.js";

export const LINE = 26;
const BAR = 18;

/* Holes: hatched, so that they are told from blocks without colour. */
function hatching(context, ratio) {
  const tile = document.createElement("canvas");
  const edge = 6 * ratio;
  tile.width = tile.height = edge;
  const to = tile.getContext("2d");
  to.fillStyle = cssColor("--hole");
  to.fillRect(0, 0, edge, edge);
  to.strokeStyle = cssColor("--hole-line");
  to.lineWidth = ratio;
  to.beginPath();
  to.moveTo(0, edge);
  to.lineTo(edge, 0);
  to.stroke();
  return context.createPattern(tile, "repeat");
}

/* [address, size, how much is used] of a line; a segment's later lines have their offset alone. */
function labelOf({ segment, from, to, folded }) {
  const used = segment.used < segment.bytes ? share(segment.used, segment.bytes) : "full";
  if (from) return folded ? [`+${size(from)}`, size(to - from), "free"] : [`+${size(from)}`, "", ""];
  return [address(segment.address), size(segment.bytes), used];
}

function drawBlocks(context, line, blocks, colors, left, width, y) {
  const scale = width / (line.to - line.from);
  let drawnTo = -1;
  for (let i = line.first; i < line.last; i++) {
    const begin = Math.max(line.from, blocks.offset[i]);
    const end = Math.min(line.to, blocks.offset[i] + blocks.bytes[i]);
    const x = (begin - line.from) * scale;
    const w = Math.max(1, (end - begin) * scale);
    if (x + w - drawnTo < 0.5) continue;
    context.fillStyle = colors[i];
    context.fillRect(left + x, y, w > 3 ? w - 0.75 : w, BAR);
    drawnTo = x + w;
  }
}

/** Draws `lines` from number `first` on; `chosen` is {line, block} or null. */
export function drawLines(canvas, { lines, first, blocks, colors, labelWidth, longest, chosen }) {
  const ratio = devicePixelRatio || 1;
  const width = canvas.clientWidth;
  const height = canvas.clientHeight;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  context.clearRect(0, 0, width, height);
  const holes = hatching(context, ratio);
  holes.setTransform(new DOMMatrix().scale(1 / ratio));
  context.font = "12px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace";
  context.textBaseline = "middle";
  for (let i = first; i < lines.length && (i - first) * LINE < height; i++) {
    const line = lines[i];
    const y = (i - first) * LINE + (LINE - BAR) / 2;
    const full = width - labelWidth - 2;
    const bar = line.folded ? full : longest ? Math.max(2, (full * (line.to - line.from)) / longest) : full;
    const [where, long, used] = labelOf(line);
    context.fillStyle = cssColor(line.segment.pinned && !line.from ? "--error" : "--muted");
    if (line.segment.pinned && !line.from) context.fillText("▪", 2, y + BAR / 2);
    context.fillStyle = cssColor("--text");
    if (labelWidth > 160) context.fillText(where, 14, y + BAR / 2);
    context.fillStyle = cssColor("--muted");
    context.textAlign = "right";
    context.fillText(long, labelWidth - 54, y + BAR / 2);
    context.fillText(used, labelWidth - 10, y + BAR / 2);
    context.textAlign = "left";
    context.fillStyle = holes;
    context.globalAlpha = line.folded ? 0.45 : 1;
    context.fillRect(labelWidth, y, bar, BAR);
    context.globalAlpha = 1;
    drawBlocks(context, line, blocks, colors, labelWidth, bar, y);
    if (chosen?.line === i) outline(context, line, chosen, blocks, labelWidth, bar, y);
  }
}

function outline(context, line, chosen, blocks, left, width, y) {
  const scale = width / (line.to - line.from);
  const [begin, end] = chosen.block === null ? [line.from, line.to]
    : [Math.max(line.from, blocks.offset[chosen.block]), Math.min(line.to, blocks.offset[chosen.block] + blocks.bytes[chosen.block])];
  context.strokeStyle = cssColor("--accent");
  context.lineWidth = 2;
  context.strokeRect(left + (begin - line.from) * scale - 1, y - 2, Math.max(3, (end - begin) * scale) + 1, BAR + 4);
}
