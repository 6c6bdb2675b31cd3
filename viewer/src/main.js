// The page: reads its data, shows one view at a time, keeps what was made of each.

import "./style/base.css";
import "./style/parts.css";
import "./style/views.css";
import { checkbox, h, select, showExact, exactShown } from "./dom.js";
import { givenOrder, runsOf } from "./model.js";
import { ownPayload } from "./payload.js";
import { applyTheme, theme } from "./prefs.js";
import { closeSite, showSite } from "./site.js";
import { state } from "./state.js";
import { hideTip } from "./tip.js";
import { compare } from "./views/compare.js";
import { flame } from "./views/flame.js";
import { jobPart } from "./views/job.js";
import { map } from "./views/map.js";
import { overview } from "./views/overview.js";
import { ranges } from "./views/ranges.js";
import { sites } from "./views/sites.js";
import { timeline } from "./views/timeline.js";

const VIEWS = {
  overview: ["Overview", (run, runs, job) => overview(run, jobPart(runs, job))],
  timeline: ["Timeline", timeline],
  ranges: ["Ranges", ranges],
  flame: ["Flame graph", flame],
  map: ["Memory map", map],
  sites: ["Sites", sites],
  compare: ["Compare", compare],
};

class Page {
  constructor(app, payload) {
    this.runs = runsOf(payload);
    this.job = payload.document.job;
    this.given = givenOrder(payload, this.runs);
    this.main = h("main", { id: "view", tabindex: "-1" });
    this.links = Object.entries(VIEWS).map(([id, [title]]) => h("a", { href: `#${id}`, data: { view: id } }, title));
    this.brand = h("div", { class: "brand" });
    app.replaceChildren(
      h("a", { class: "skip", href: "#view", onclick: (event) => this.skip(event) }, "Skip to the content"),
      h("header", { class: "top" }, this.brand,
        h("nav", { "aria-label": "Views" }, this.links),
        h("div", { class: "settings" },
          checkbox("Exact bytes", exactShown(), (on) => showExact(on), "show every size in bytes"),
          select("Theme", [["auto", "as the system"], ["light", "light"], ["dark", "dark"]], theme(), (value) => applyTheme(value)))),
      this.main,
      h("footer", {}, `gpumem-report ${this.runs[0].document.tracer?.version ?? ""} · ${this.runs.map((run) => run.document.file?.path).join(", ")}`),
      h("div", { id: "announcer", class: "visually-hidden", "aria-live": "polite" }));
    state.onmove = () => this.show();
    state.onwrite = () => {
      this.drawn = state.address({ site: null });
      this.link();
    };
    addEventListener("scroll", hideTip, { passive: true });
  }

  get run() {
    return this.runs[Number(state.get("run", 0))] ?? this.runs[0];
  }

  runPicker() {
    if (this.runs.length < 2) return h("span", { class: "file-name" }, this.run.file);
    return select("File", this.runs.map((run, i) => [i, run.name]), this.runs.indexOf(this.run), (value) => {
      state.putAll({ run: value === "0" ? null : value, at: null, zoom: null, range: null, frame: null, level: null, device: null });
      this.draw(this.view, this.run);
    });
  }

  skip(event) {
    event.preventDefault();
    this.main.focus();
  }

  get view() {
    return VIEWS[state.get("view")] ? state.get("view") : "overview";
  }

  /* The links to the other views keep the moment and everything else. */
  link() {
    for (const link of this.links) link.href = state.address({ view: link.dataset.view, site: null });
  }

  show() {
    hideTip();
    closeSite();
    const { view, run } = this;
    for (const link of this.links) {
      if (link.dataset.view === view) {
        link.setAttribute("aria-current", "page");
        link.parentElement.scrollTo({ left: link.offsetLeft - link.parentElement.offsetLeft - 40 });
      } else link.removeAttribute("aria-current");
    }
    this.link();
    if (this.drawn !== state.address({ site: null })) this.draw(view, run);
    const site = run.byId.get(state.get("site"));
    if (site) showSite(site, run);
  }

  draw(view, run) {
    this.brand.replaceChildren(h("span", { class: "brand-name" }, "gpumemtrace"), this.runPicker());
    // The comparison keeps the files that were opened in it.
    const element = view === "compare" && this.comparison ? this.comparison : h("div", { class: `view view-${view}` });
    const fresh = !element.firstChild;
    if (view === "compare") this.comparison = element;
    this.main.replaceChildren(element);
    if (fresh) element.append(...VIEWS[view][1](run, this.runs, this.job, this.given).flat(3).filter(Boolean));
    document.title = `${VIEWS[view][0]} · ${run.title} · GPU memory`;
    if (view !== this.shown) scrollTo(0, 0);
    this.shown = view;
    this.drawn = state.address({ site: null });
    showExact(exactShown());
  }
}

async function start() {
  const app = document.getElementById("app");
  applyTheme();
  try {
    new Page(app, await ownPayload()).show();
  } catch (error) {
    app.replaceChildren(h("main", { class: "failed" }, h("h1", {}, "This page cannot be shown"), h("p", { role: "alert" }, error.message)));
    throw error;
  }
}

start();
