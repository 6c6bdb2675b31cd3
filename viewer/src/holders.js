// What keeps a site's blocks alive, where somebody looked: chains of objects, from a root to the block.

import { h, size } from "./dom.js";
import { plural, time } from "./format.js";

const WHEN = { now: "of the running process", core: "in the core file", oom: "at the first out-of-memory error", mark: "at a mark", signal: "at the signal",
  grow: "when a site had grown" };

function takenNote(taken) {
  const when = [WHEN[taken.when] ?? taken.when, taken.time_s === null ? null : `at ${time(taken.time_s)}`].filter(Boolean).join(", ");
  return `Looked for ${when}${taken.python ? `, in Python ${taken.python}` : ""}${taken.whole ? "" : "; not every object could be read"}.`;
}

const kindOf = (step, i) => (i === 0 ? "root" : step === "block" ? "block" : "step");

/** One chain: each step is held by the step above it. */
function chain(holder) {
  const steps = holder.chain.map((step, i) => h("li", { class: `chain-${kindOf(step, i)}` },
    i ? h("span", { class: "chain-holds" }, "holds ") : null, h("code", {}, step)));
  return h("li", { class: "holder" },
    h("p", { class: "holder-head" }, size(holder.bytes), ` in ${plural(holder.blocks, "block")} `,
      holder.garbage ? h("span", { class: "tag verdict-held", title: "only unreachable cycles keep it: gc.collect() frees it" }, "garbage cycle") : null,
      holder.complete ? null : h("span", { class: "tag" }, "not certain")),
    steps.length ? h("ol", { class: "chain" }, steps) : h("p", { class: "note" }, "Nothing was found that holds them."),
    holder.note ? h("p", { class: "note" }, holder.note) : null);
}

/** The part of a site's dialog; null where nobody looked. */
export function chainsOf(run, site) {
  const { holders = [], holders_taken: taken = null } = run.document;
  if (!taken) return null;
  const mine = holders.filter((holder) => holder.site === site.id);
  return [h("h3", {}, "What keeps it alive"), h("p", { class: "note" }, takenNote(taken)),
    mine.length ? h("ul", { class: "holders" }, mine.map(chain)) : h("p", { class: "note" }, "No block of this site was live then.")];
}

/** The part of the overview: the largest holders, with their sites; null where nobody looked. */
export function holdersPart(run, siteButton) {
  const { holders = [], holders_taken: taken = null } = run.document;
  if (!taken) return null;
  const one = (holder) => {
    const site = run.byId.get(holder.site);
    const item = chain(holder);
    if (site) item.firstChild.append(" of ", siteButton(site, run));
    return item;
  };
  return h("section", { "aria-labelledby": "holders" }, h("h2", { id: "holders" }, "What keeps memory alive"), h("p", { class: "note" }, takenNote(taken)),
    holders.length ? h("ul", { class: "holders" }, holders.slice(0, 8).map(one)) : h("p", { class: "note" }, "No live block was looked for."),
    holders.length > 8 ? h("p", { class: "note" }, `${plural(holders.length - 8, "more chain")} with their sites.`) : null);
}
