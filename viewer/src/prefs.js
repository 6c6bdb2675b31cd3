// What the reader chose, kept from page to page where the browser allows it.

const memory = new Map();

function read(name) {
  try {
    return localStorage.getItem(`gpumemtrace.${name}`) ?? memory.get(name) ?? null;
  } catch {
    return memory.get(name) ?? null;
  }
}

function write(name, value) {
  memory.set(name, value);
  try {
    localStorage.setItem(`gpumemtrace.${name}`, value);
  } catch {
    // Pages from disk may have no storage: then it lasts as long as the page.
  }
}

const THEMES = ["auto", "light", "dark"];

export const theme = () => (THEMES.includes(read("theme")) ? read("theme") : "auto");

export function applyTheme(value = theme()) {
  write("theme", value);
  if (value === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = value;
  document.dispatchEvent(new Event("themechange"));
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => document.dispatchEvent(new Event("themechange")));

/** The value of a CSS custom property, for canvases. */
export const cssColor = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
