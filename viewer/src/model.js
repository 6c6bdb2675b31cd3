// A file's document as the views want it: sites with their places, looked up by id.

import { baseName, known } from "./format.js";
import { History } from "./history.js";
import { openingOf } from "./moment.js";

/** One frame in words: "forward (model.py:12)", "libcublas.so.13+0x5b45ee". */
export function frameName(frame) {
  if (!frame.function) return `${baseName(frame.module) ?? "unknown"}+0x${(frame.offset ?? 0).toString(16)}`;
  if (frame.kind === "python" && frame.file) return `${frame.function} (${baseName(frame.file)}:${frame.line ?? "?"})`;
  return frame.function;
}

/** Where a frame is: file and line, else the module. */
export function framePlace(frame) {
  if (frame.file) return frame.line ? `${frame.file}:${frame.line}` : frame.file;
  return frame.module ? `${frame.module}+0x${(frame.offset ?? 0).toString(16)}` : "no module";
}

/* Without the page's own parts (a document that was opened as JSON): the innermost Python frame, else
   the innermost one with a name. */
function guessOwnFrame(stack) {
  const python = stack.findIndex((frame) => frame.kind === "python");
  return python >= 0 ? python : stack.findIndex((frame) => frame.function);
}

function makeSite(raw, index, part) {
  const own = part?.own_frame ?? guessOwnFrame(raw.stack);
  return {
    ...raw,
    index,
    own,
    place: part?.place ?? (raw.stack.length ? frameName(raw.stack[Math.max(0, own)]) : raw.function ?? "no stack"),
    plumbing: part?.plumbing ?? "",
  };
}

/* What a site reads like, without lines and addresses: as gm_site_key in src/report/gate/compare.c. */
export function siteKey(site) {
  const frames = site.stack.map((frame) => frame.function ?? `${baseName(frame.module) ?? ""}+${frame.offset}`);
  return [site.level, site.kind, site.device, ...(frames.length ? frames : [site.function ?? ""])].join("|");
}

class Run {
  constructor(document, part, number) {
    this.document = document;
    this.map = part?.memory_map ?? null;
    this.history = part?.history ?? null;
    this.sites = document.sites.map((site, i) => makeSite(site, i, part?.sites[i]));
    this.byId = new Map(this.sites.map((site) => [site.id, site]));
    const { rank, pid } = document.process ?? {};
    this.file = baseName(document.file?.path) ?? `file ${number + 1}`;
    this.name = rank === null || rank === undefined ? this.file : `rank ${rank} · ${this.file}`;
    this.title = (document.process?.command ?? []).map((word, i) => (i === 0 ? baseName(word) : word)).join(" ") ||
      `process ${pid ?? "?"}`;
    this.levels = ["driver", "torch", "custom"].filter((level) => this.sites.some((site) => site.level === level));
  }

  /** The history, unpacked when it is asked for first; null without one. */
  get past() {
    if (this.unpacked === undefined) this.unpacked = known(this.history?.from_s) ? new History(this.history, this.sites) : null;
    return this.unpacked;
  }

  /** What the first finding is about, which the page opens with. */
  get opening() {
    this.opened ??= openingOf(this);
    return this.opened;
  }

  /** The level that the run is about: PyTorch's, if it is there. */
  get mainLevel() {
    return this.levels.includes("torch") ? "torch" : this.levels[0] ?? "driver";
  }

  /** True where a site's memory belongs to the process and counts in totals. */
  get owned() {
    const foreign = new Set(this.document.usage.filter((row) => !row.owned).map((row) => row.kind));
    return (site) => site.level !== "driver" || !foreign.has(site.kind);
  }

  /** Devices that have sites or figures; null for host memory. */
  get devices() {
    const list = new Set(this.document.totals.map((total) => total.device));
    for (const site of this.sites) list.add(site.device);
    return [...list].sort((a, b) => (a ?? 1e9) - (b ?? 1e9));
  }

  total(device) {
    return this.document.totals.find((total) => total.device === device);
  }

  /** The end of what was recorded, in seconds. */
  get end() {
    const lines = this.document.timeline.map((line) => line.start_s + line.width_s * line.max.length);
    return Math.max(this.document.process?.duration_s ?? 0, ...lines);
  }
}

/** The runs in the order in which their files were given, where that is known. */
export function givenOrder(payload, runs) {
  const given = (payload.order ?? []).map((number) => runs[number]);
  return given.length === runs.length ? given : runs;
}

/** The runs of a payload: one per file. */
export function runsOf({ document, parts }) {
  const documents = document.runs.length ? document.runs : [document];
  return documents.map((one, i) => new Run(one, parts[i], i));
}
