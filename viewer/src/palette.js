// Colours that mean something: the same thing has the same colour in every view. Those for text are
// in style/base.css.

const CATEGORIES = {
  weights: "#4477aa",
  gradients: "#66a8d4",
  "optimizer state": "#aa6fb0",
  activations: "#d98c3f",
  workspace: "#7a9a4a",
  communication: "#c45a77",
  context: "#8a8f99",
  other: "#b3a078",
};
const OTHERS = ["#5b8f8a", "#a8785a", "#7272b8", "#9c9c3c", "#b86c9c", "#5f9ea0", "#cc7a5c", "#6d8f5a"];

function hash(text) {
  let value = 2166136261;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 16777619);
  return value >>> 0;
}

export const colorOf = (name) => CATEGORIES[name] ?? OTHERS[hash(name ?? "") % OTHERS.length];

const LEDGER = {
  context: "#8a8f99",
  "modules and limits": "#a8785a",
  "first launches of kernels": "#7272b8",
  streams: "#5f9ea0",
  "PyTorch reserved": "#4477aa",
  "rounding to pages": "#b3a078",
  unexplained: "#c45a5a",
};

/** Colours of a ledger's rows {what, library}: what is known by name has its own, no two have the same. */
export function ledgerColors(rows) {
  const used = new Set();
  return rows.map(({ what, library }) => {
    const start = hash(`${what} ${library ?? ""}`);
    const others = OTHERS.map((_, i) => OTHERS[(start + i) % OTHERS.length]);
    const color = [LEDGER[what], ...others].find((one) => one && !used.has(one)) ?? others[0];
    used.add(color);
    return color;
  });
}

export const SERIES = {
  driver_used: { color: "#8a8f99", name: "the driver's own figure", dash: [6, 4] },
  tracked: { color: "#4477aa", name: "tracked allocations" },
  torch_reserved: { color: "#aa6fb0", name: "PyTorch reserved" },
  torch_allocated: { color: "#d98c3f", name: "PyTorch allocated" },
  pool_reserved: { color: "#7a9a4a", name: "pools reserved" },
  pinned: { color: "#c45a77", name: "pinned host memory" },
  custom: { color: "#5b8f8a", name: "program's own pools" },
};

export const seriesStyle = (series) => SERIES[series] ?? { color: colorOf(series), name: series };

/** From long ago (pale) to just now (strong), `share` 0 to 1. */
export function ageColor(share) {
  const hue = 262 - 200 * share;
  return `hsl(${hue.toFixed(0)} 46% ${(62 - 12 * share).toFixed(0)}%)`;
}

/** Frames of a flame graph: Python, C++ and what has no name, each with a little variation. */
export function frameColor(frame, name) {
  const shift = hash(name) % 24;
  if (frame?.kind === "python") return `hsl(${206 + shift * 0.8} 48% ${58 + (shift % 8)}%)`;
  if (frame && !frame.function) return `hsl(30 8% ${62 + (shift % 8)}%)`;
  if (frame) return `hsl(${30 + shift * 0.8} 58% ${60 + (shift % 8)}%)`;
  return "hsl(215 12% 62%)";
}

/** Red where there is more than before, blue where less; `share` from -1 to 1. */
export function changeColor(share) {
  if (!share) return "hsl(215 8% 66%)";
  const strength = Math.min(1, Math.sqrt(Math.abs(share)));
  return share > 0 ? `hsl(8 ${(30 + 45 * strength).toFixed(0)}% ${(70 - 14 * strength).toFixed(0)}%)`
    : `hsl(212 ${(30 + 40 * strength).toFixed(0)}% ${(70 - 12 * strength).toFixed(0)}%)`;
}
