// Figures in words, by the same rules as the tool's text (src/report/support/format.c).

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export const known = (value) => value !== null && value !== undefined;

/** What stands in the place of a fact that the file does not have. */
export const ABSENT = "not recorded";

export function size(bytes) {
  if (!known(bytes)) return ABSENT;
  let value = Math.abs(bytes);
  let unit = 0;
  while (value >= 1023.995 && unit < 5) {
    value /= 1024;
    unit++;
  }
  const sign = bytes < 0 ? "−" : "";
  return sign + (unit === 0 ? `${value} B` : `${value.toFixed(value < 99.95 ? 2 : 1)} ${UNITS[unit]}`);
}

export function count(value) {
  return known(value) ? Math.round(value).toString().replace(/\B(?=(\d{3})+(?!\d))/g, ",") : ABSENT;
}

export const exactSize = (bytes) => `${count(bytes)} ${bytes === 1 ? "byte" : "bytes"}`;

/** A difference: with its sign, "0 B" without. */
export const change = (bytes) => (bytes > 0 ? "+" : "") + size(bytes);

export function time(seconds) {
  if (!known(seconds)) return ABSENT;
  if (seconds < 1e-3) return `${Math.round(seconds * 1e6)} µs`;
  if (seconds < 1) return `${(seconds * 1e3).toFixed(1)} ms`;
  if (seconds < 120) return `${seconds.toFixed(2)} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}

export function percent(value) {
  if (!known(value) || !Number.isFinite(value)) return ABSENT;
  return `${value !== 0 && Math.abs(value) < 10 ? value.toFixed(1) : Math.round(value)} %`;
}

export const share = (part, whole) => (known(part) && whole ? percent((100 * part) / whole) : "–");

export const deviceName = (device) => (known(device) ? `device ${device}` : "host");

export const baseName = (path) => (path ? path.slice(path.lastIndexOf("/") + 1) : path);

/** "0x7f..." of an address: JSON's numbers hold addresses exactly. */
export const address = (value) => `0x${value.toString(16)}`;

export function plural(number, one, many = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : many}`;
}
