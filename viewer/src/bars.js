// A stacked bar with its table: the picture for the eye, the table for everyone.

import { h, size } from "./dom.js";
import { share, size as sizeText } from "./format.js";
import { swatch } from "./site.js";

/** `rows`: {name, bytes, color}; `whole` is what the bar's full width stands for. */
export function stackedBar(rows, whole, label) {
  const sum = rows.reduce((total, row) => total + Math.max(row.bytes, 0), 0);
  const full = Math.max(whole ?? 0, sum, 1);
  const shown = rows.filter((row) => row.bytes > 0);
  const part = (row) => h("div", { class: "bar-part", title: `${row.name}: ${sizeText(row.bytes)} (${share(row.bytes, full)})`,
    style: { width: `${(100 * row.bytes) / full}%`, background: row.color } });
  return h("div", { class: "stacked" },
    h("div", { class: "bar-whole", role: "img",
      "aria-label": `${label}: ${shown.map((row) => `${row.name} ${share(row.bytes, full)}`).join(", ")}` }, shown.map(part)),
    h("table", { class: "legend" }, h("caption", { class: "visually-hidden" }, label),
      h("thead", { class: "visually-hidden" }, h("tr", {}, ["what", "bytes", "share"].map((text) => h("th", { scope: "col" }, text)))),
      h("tbody", {}, rows.map((row) => h("tr", { class: row.bytes ? null : "zero" },
        h("th", { scope: "row" }, swatch(row.color), row.name), h("td", { class: "num" }, size(row.bytes)),
        h("td", { class: "num muted" }, share(row.bytes, full)))))));
}
