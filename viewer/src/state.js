// What is shown, kept in the address: "#timeline?at=0.25&by=site". A link to it shows the same, and
// the back button goes through it.

/* What one goes back from; the rest replaces the address in its place. */
const STEPS = new Set(["view", "run", "at", "zoom", "site", "frame", "range"]);

function parse(hash) {
  const [view, rest = ""] = hash.replace(/^#/, "").split("?");
  return new Map([["view", view], ...new URLSearchParams(rest)].filter(([, value]) => value));
}

function write(values) {
  const rest = new URLSearchParams([...values].filter(([name]) => name !== "view")).toString();
  return `#${values.get("view") ?? ""}${rest ? `?${rest}` : ""}`;
}

class State {
  constructor() {
    this.values = parse(location.hash);
    this.onmove = () => {};
    this.onwrite = () => {};
    addEventListener("hashchange", () => this.moved());
  }

  moved() {
    if (location.hash === this.written) return;
    this.values = parse(location.hash);
    this.written = location.hash;
    this.onmove();
  }

  get(name, otherwise = "") {
    return this.values.get(name) ?? otherwise;
  }

  /** Sets a value; one that equals `otherwise` needs no place in the address. */
  put(name, value, otherwise = "") {
    this.putAll({ [name]: String(value) === String(otherwise) ? null : value });
  }

  /** Sets several values as one step; null removes one. */
  putAll(values) {
    const before = write(this.values);
    let step = false;
    for (const [name, value] of Object.entries(values)) {
      const text = value === null || value === undefined || value === "" ? undefined : String(value);
      if (this.values.get(name) === text) continue;
      step ||= STEPS.has(name);
      if (text === undefined) this.values.delete(name);
      else this.values.set(name, text);
    }
    const address = write(this.values);
    if (address === before) return;
    this.written = address;
    try {
      history[step ? "pushState" : "replaceState"](null, "", address);
    } catch {
      location.hash = address; // where a browser refuses it of a page from disk
    }
    this.onwrite();
  }

  /** The address with other values. */
  address(values) {
    const all = new Map(this.values);
    for (const [name, value] of Object.entries(values)) {
      if (value === null) all.delete(name);
      else all.set(name, value);
    }
    return write(all);
  }
}

export const state = new State();
