// The page: reads its data, shows one view at a time, keeps what was made of each.

import "./style/base.css";
import "./style/parts.css";
import "./style/views.css";
import { checkbox, h, select, showExact, exactShown } from "./dom.js";
import { givenOrder, runsOf } from "./model.js";
import { ownPayload } from "./payload.js";
import { applyTheme, theme } from "./prefs.js";
import { hideTip } from "./tip.js";
import { compare } from "./views/compare.js";
import { flame } from "./views/flame.js";
import { jobPart } from "./views/job.js";
import { map } from "./views/map.js";
import { overview } from "./views/overview.js";
import { sites } from "./views/sites.js";
import { timeline } from "./views/timeline.js";

const VIEWS = {
  overview: ["Overview", (run, runs, job) => [...overview(run).slice(0, 3), ...jobPart(runs, job), ...overview(run).slice(3)]],
  timeline: ["Timeline", timeline],
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
    this.run = this.runs[0];
    this.made = new Map();
    this.main = h("main", { id: "view", tabindex: "-1" });
    this.links = Object.entries(VIEWS).map(([id, [title]]) => h("a", { href: `#${id}`, data: { view: id } }, title));
    app.replaceChildren(
      h("a", { class: "skip", href: "#view", onclick: (event) => this.skip(event) }, "Skip to the content"),
      h("header", { class: "top" },
        h("div", { class: "brand" }, h("span", { class: "brand-name" }, "gpumemtrace"), this.runPicker()),
        h("nav", { "aria-label": "Views" }, this.links),
        h("div", { class: "settings" },
          checkbox("Exact bytes", exactShown(), (on) => showExact(on), "show every size in bytes"),
          select("Theme", [["auto", "as the system"], ["light", "light"], ["dark", "dark"]], theme(), (value) => applyTheme(value)))),
      this.main,
      h("footer", {}, `gpumem-report ${this.run.document.tracer?.version ?? ""} · ${this.runs.map((run) => run.document.file?.path).join(", ")}`),
      h("div", { id: "announcer", class: "visually-hidden", "aria-live": "polite" }));
    addEventListener("hashchange", () => this.show());
    addEventListener("scroll", hideTip, { passive: true });
  }

  runPicker() {
    if (this.runs.length < 2) return h("span", { class: "file-name" }, this.run.file);
    return select("File", this.runs.map((run, i) => [i, run.name]), 0, (value) => {
      this.run = this.runs[value];
      this.show();
    });
  }

  skip(event) {
    event.preventDefault();
    this.main.focus();
  }

  get view() {
    const id = location.hash.slice(1);
    return VIEWS[id] ? id : "overview";
  }

  show() {
    hideTip();
    const { view, run } = this;
    const key = `${view} ${this.runs.indexOf(run)}`;
    for (const link of this.links) {
      if (link.dataset.view === view) {
        link.setAttribute("aria-current", "page");
        link.parentElement.scrollTo({ left: link.offsetLeft - link.parentElement.offsetLeft - 40 });
      } else link.removeAttribute("aria-current");
    }
    if (!this.made.has(key)) this.made.set(key, h("div", { class: `view view-${view}` }));
    const element = this.made.get(key);
    const fresh = !element.firstChild;
    this.main.replaceChildren(element);
    if (fresh) element.append(...VIEWS[view][1](run, this.runs, this.job, this.given).flat(3).filter(Boolean));
    document.title = `${VIEWS[view][0]} · ${run.title} · GPU memory`;
    scrollTo(0, 0);
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
