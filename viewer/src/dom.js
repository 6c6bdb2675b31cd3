// Building elements, and the few elements that every view uses.

import * as format from "./format.js";

function setProperty(element, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
  else if (name === "class") element.className = value;
  else if (name === "style") Object.assign(element.style, value);
  else if (name === "data") Object.assign(element.dataset, value);
  else element.setAttribute(name, value === true ? "" : value);
}

/** h("p", {class: "note"}, "text", element, [more]) */
export function h(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties ?? {})) setProperty(element, name, value);
  element.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

let exact = false;

export const exactShown = () => exact;

/** Shows every size on the page in bytes, or in units again. */
export function showExact(on) {
  exact = on;
  for (const element of document.querySelectorAll("[data-bytes]")) element.textContent = sizeText(element.dataset);
}

function sizeText({ bytes, signed }) {
  const value = Number(bytes);
  if (exact) return (signed && value > 0 ? "+" : "") + format.count(value);
  return signed ? format.change(value) : format.size(value);
}

/** A size in units, with its exact bytes on hover; `signed` for differences. */
export function size(bytes, { signed = false } = {}) {
  if (!format.known(bytes)) return h("span", { class: "absent" }, format.ABSENT);
  const data = signed ? { bytes, signed: "1" } : { bytes };
  return h("span", { class: "size", title: format.exactSize(bytes), data }, sizeText(data));
}

export const number = (value) => h("span", { class: format.known(value) ? "number" : "absent" }, format.count(value));

/** A plain table: `columns` are {title, cell(row), numeric}. */
export function table(caption, columns, rows, { hideCaption = false, rowHeader = 0 } = {}) {
  const cell = (row, column, i) =>
    h(i === rowHeader ? "th" : "td", { class: column.numeric ? "num" : null, scope: i === rowHeader ? "row" : null },
      column.cell(row));
  return h("div", { class: "scroll-x", tabindex: "0", role: "region", "aria-label": caption },
    h("table", { class: "plain" },
      h("caption", { class: hideCaption ? "visually-hidden" : null }, caption),
      h("thead", {}, h("tr", {}, columns.map((column) =>
        h("th", { scope: "col", class: column.numeric ? "num" : null, title: column.help }, column.title)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, columns.map((column, i) => cell(row, column, i)))))));
}

let fields = 0;

/** A control under its name. The name stands beside the control, so that it is all of the label. */
export function field(label, control, grow = false) {
  control.id = `field-${fields++}`;
  return h("div", { class: grow ? "field grow" : "field" }, h("label", { for: control.id }, label), control);
}

/** A named <select>; options are [value, text]. */
export function select(label, options, value, onchange) {
  const element = h("select", { onchange: () => onchange(element.value) },
    options.map(([key, text]) => h("option", { value: key, selected: String(key) === String(value) }, text)));
  return field(label, element);
}

export function checkbox(label, checked, onchange, help) {
  const element = h("input", { type: "checkbox", checked, onchange: () => onchange(element.checked) });
  return h("label", { class: "check", title: help }, element, h("span", {}, label));
}

export function searchField(label, oninput, placeholder, value = "") {
  const element = h("input", { type: "search", placeholder, value, autocomplete: "off", spellcheck: "false",
    oninput: () => oninput(element.value.trim()) });
  return field(label, element, true);
}

/** Calls `action` once things have been quiet for `ms`. */
export function settled(action, ms = 120) {
  let timer;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...values), ms);
  };
}

/** Says something to screen readers. */
export function announce(text) {
  const region = document.getElementById("announcer");
  if (region) region.textContent = text;
}

/** Calls `draw` when the element's width has changed, until it leaves the page. */
export function onResize(element, draw) {
  let width = element.clientWidth;
  const observer = new ResizeObserver(() => {
    if (!element.isConnected) observer.disconnect();
    else if (element.clientWidth !== width) {
      width = element.clientWidth;
      draw();
    }
  });
  observer.observe(element);
}
