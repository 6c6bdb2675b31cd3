// Several files of one job: a row for each, then what differs between them.

import { h, number, size, table } from "../dom.js";
import { known, time } from "../format.js";

/* The sum over a run's devices; null where one of them is not known. */
const sumOf = (run, key) => run.document.totals.reduce((sum, total) => (known(sum) && known(total[key]) ? sum + total[key] : null), 0);

export function jobPart(runs, job) {
  if (runs.length < 2) return [];
  const findings = job?.findings ?? [];
  return [h("section", { "aria-labelledby": "job" }, h("h2", { id: "job" }, "Files on this page"),
    table("Files on this page", [
      { title: "file", cell: (run) => run.name },
      { title: "peak", numeric: true, cell: (run) => size(sumOf(run, "peak_bytes")) },
      { title: "current", numeric: true, cell: (run) => size(sumOf(run, "current_bytes")) },
      { title: "recorded", numeric: true, cell: (run) => time(run.document.process?.duration_s) },
      { title: "findings", numeric: true, cell: (run) => number(run.document.findings.length) },
      { title: "OOMs", numeric: true, cell: (run) => number(run.document.ooms.length + (run.document.retries?.ooms_not_kept ?? 0)) },
    ], runs, { hideCaption: true }),
    findings.length ? h("ol", { class: "findings" }, findings.map((one) => h("li", { class: `finding ${one.severity}` },
      h("span", { class: "icon", "aria-hidden": "true" }, one.severity === "note" ? "i" : "!"),
      h("div", {}, h("h3", {}, one.title), h("p", { class: "evidence" }, one.evidence),
        h("ul", { class: "advice" }, one.advice.map((line) => h("li", {}, line))))))) : null)];
}
