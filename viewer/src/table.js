// A table of any length: sorted by a click on a column's head, rows made only while they are in
// sight. A real <table>, so that screen readers read it as one.

import { h, announce } from "./dom.js";
import { count } from "./format.js";

const ROW = 34;
const AROUND = 12;

function comparison(column, descending) {
  const way = descending ? -1 : 1;
  return (a, b) => {
    const x = column.key(a);
    const y = column.key(b);
    if (x === y) return 0;
    if (x === null || x === undefined) return 1;
    if (y === null || y === undefined) return -1;
    return (x < y ? -1 : 1) * way;
  };
}

/**
 * `columns`: {id, title, help, numeric, width, key(row), cell(row)}; `key` sorts, `cell` shows.
 * `onchoose(row)` is called for a click on a row (the first column should hold a button for keys).
 */
export class BigTable {
  constructor({ label, columns, sort, descending = true, height = 520, onchoose, onsort, rowClass }) {
    Object.assign(this, { label, columns, sort, descending, onchoose, onsort, rowClass });
    this.rows = [];
    this.shown = new Map();
    this.heads = columns.map((column) => this.head(column));
    this.above = h("tr", { class: "spacer", "aria-hidden": "true" }, h("td", { colspan: columns.length }));
    this.below = h("tr", { class: "spacer", "aria-hidden": "true" }, h("td", { colspan: columns.length }));
    this.body = h("tbody", {}, this.above, this.below);
    this.table = h("table", { class: "big" },
      h("caption", { class: "visually-hidden" }, label),
      h("colgroup", {}, columns.map((column) => h("col", { style: { width: column.width ?? "7.5rem" } }))),
      h("thead", {}, h("tr", { "aria-rowindex": "1" }, this.heads)), this.body);
    this.box = h("div", { class: "big-box", tabindex: "0", role: "region", "aria-label": `${label}, scrolls`,
      style: { maxHeight: `${height}px` }, onscroll: () => this.draw() }, this.table);
    this.element = h("div", { class: "big-frame" }, this.box);
    new ResizeObserver(() => this.draw()).observe(this.box);
  }

  head(column) {
    const button = h("button", { type: "button", class: "sort", title: column.help,
      onclick: () => this.sortBy(column.id) }, column.title, h("span", { class: "arrow", "aria-hidden": "true" }));
    return h("th", { scope: "col", class: column.numeric ? "num" : null, data: { column: column.id } }, button);
  }

  sortBy(id) {
    this.descending = this.sort === id ? !this.descending : Boolean(this.columns.find((c) => c.id === id).numeric);
    this.sort = id;
    this.onsort?.(id, this.descending);
    this.update(this.rows);
    announce(`sorted by ${this.columns.find((c) => c.id === id).title}, ${this.descending ? "descending" : "ascending"}`);
  }

  update(rows) {
    const column = this.columns.find((one) => one.id === this.sort);
    this.rows = column ? [...rows].sort(comparison(column, this.descending)) : rows;
    this.heads.forEach((head) => {
      const mine = head.dataset.column === this.sort;
      if (mine) head.setAttribute("aria-sort", this.descending ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    this.table.setAttribute("aria-rowcount", this.rows.length + 1);
    for (const row of this.shown.values()) row.remove();
    this.shown.clear();
    this.draw();
  }

  makeRow(index) {
    const row = this.rows[index];
    const element = h("tr", { "aria-rowindex": index + 2, class: this.rowClass?.(row) },
      this.columns.map((column, i) =>
        h(i === 0 ? "th" : "td", { scope: i === 0 ? "row" : null, class: column.numeric ? "num" : null },
          column.cell(row, index))));
    if (this.onchoose)
      element.addEventListener("click", (event) => {
        if (!event.target.closest("button,a")) this.onchoose(row);
      });
    return element;
  }

  draw() {
    const top = Math.max(0, this.box.scrollTop - ROW);
    const first = Math.max(0, Math.floor(top / ROW) - AROUND);
    const last = Math.min(this.rows.length, Math.ceil((top + (this.box.clientHeight || 600)) / ROW) + AROUND);
    for (const [index, row] of this.shown)
      if (index < first || index >= last) {
        row.remove();
        this.shown.delete(index);
      }
    for (let index = first; index < last; index++)
      if (!this.shown.has(index)) this.place(index);
    this.above.firstChild.style.height = `${first * ROW}px`;
    this.below.firstChild.style.height = `${(this.rows.length - last) * ROW}px`;
    if (!this.rows.length) this.below.firstChild.textContent = "Nothing to show.";
    else this.below.firstChild.textContent = "";
  }

  place(index) {
    const next = [...this.shown.keys()].filter((other) => other > index);
    const row = this.makeRow(index);
    this.body.insertBefore(row, next.length ? this.shown.get(Math.min(...next)) : this.below);
    this.shown.set(index, row);
  }
}

export const rowsNote = (shown, all, what) =>
  shown === all ? `${count(all)} ${what}` : `${count(shown)} of ${count(all)} ${what}`;
