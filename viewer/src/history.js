// What came and went, as the page keeps it (gm_page_put_history in
// src/report/render/page/internal.h), played to any moment.

/* A change's place in the list of those of one device and level, with the totals after each. */
class Lane {
  constructor(history, mine) {
    const { site, bytes, times, length } = history;
    const at = new Int32Array(length);
    let count = 0;
    for (let i = 0; i < length; i++) if (bytes[i] !== 0 && mine[site[i]]) at[count++] = i;
    this.history = history;
    this.at = at.slice(0, count); // numbers of the changes
    this.start = 0; // those of them that were live at the history's beginning
    while (this.start < count && this.at[this.start] < history.start) this.start++;
    this.totals = new Float64Array(count);
    this.times = new Float64Array(count);
    let total = 0;
    for (let i = 0; i < count; i++) {
      total += bytes[this.at[i]];
      this.totals[i] = total;
      this.times[i] = times[this.at[i]];
    }
  }

  get length() {
    return this.at.length;
  }

  /** How many of the changes happened at or before a moment. */
  until(moment) {
    return upper(this.times, moment);
  }

  /** True where the state after this change was a state of the program. */
  whole(i) {
    if (i + 1 < this.start) return false;
    return !this.history.thinned || i + 1 === this.length || this.times[i + 1] > this.times[i];
  }

  /** The change after which the total is highest; -1 without changes. */
  get peak() {
    if (this.highest === undefined) {
      this.highest = -1;
      for (let i = 0; i < this.length; i++)
        if ((this.highest < 0 || this.totals[i] >= this.totals[this.highest]) && this.whole(i)) this.highest = i;
    }
    return this.highest;
  }
}

/** The number of elements of a sorted array that are not above `value`. */
export function upper(array, value) {
  let low = 0;
  let high = array.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (array[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}

const MAPPING = 3; // enum gm_page_role
const RESERVATION = 6;

/* Physical memory is counted as a handle, wherever it is mapped. */
const counted = (role) => role !== MAPPING && role !== RESERVATION;

export class History {
  constructor(part, sites) {
    const { dt_ns: steps, place, shape, shapes, address, ...rest } = part;
    const length = steps.length;
    Object.assign(this, rest, { length, shapes, sites, lanes: new Map() });
    this.place = new Int32Array(place);
    this.shape = new Int32Array(shape); // of what came; of what went that of what came
    this.came = new Uint8Array(length);
    this.times = new Float64Array(length);
    this.site = new Int32Array(length);
    this.bytes = new Float64Array(length); // what it changes of its site's live bytes
    this.address = new Float64Array(address.length);
    let now = 0;
    address.forEach((step, i) => {
      now += step;
      this.address[i] = now;
    });
    this.play(steps);
  }

  play(steps) {
    const { shapes, shape, place } = this;
    const live = new Int32Array(this.address.length).fill(-1);
    let now = 0;
    for (let i = 0; i < this.length; i++) {
      now += steps[i];
      this.times[i] = now / 1e9;
      this.came[i] = shape[i] >= 0 ? 1 : 0;
      if (!this.came[i]) shape[i] = live[place[i]];
      live[place[i]] = this.came[i] ? shape[i] : -1;
      this.site[i] = shapes.site[shape[i]];
      if (counted(shapes.role[shape[i]])) this.bytes[i] = this.came[i] ? shapes.bytes[shape[i]] : -shapes.bytes[shape[i]];
    }
  }

  /** How many of the changes happened at or before a moment. */
  until(moment) {
    return Math.max(this.start, upper(this.times, moment));
  }

  /** The changes of a level on a device that count in its totals. */
  lane(level, device, owned) {
    const key = `${level} ${device}`;
    if (!this.lanes.has(key)) {
      const mine = Uint8Array.from(this.sites, (site) => (site.level === level && site.device === device && owned(site) ? 1 : 0));
      this.lanes.set(key, new Lane(this, mine));
    }
    return this.lanes.get(key);
  }

  /** Live bytes and counts of every site after so many changes. */
  sitesAfter(count) {
    const live = new Float64Array(this.sites.length);
    const counts = new Int32Array(this.sites.length);
    for (let i = 0; i < count; i++) {
      if (!counted(this.shapes.role[this.shape[i]])) continue;
      live[this.site[i]] += this.bytes[i];
      counts[this.site[i]] += this.came[i] ? 1 : -1;
    }
    return { live, counts };
  }

  /** The numbers of the changes by which came what is live after so many, by place. */
  liveAfter(count) {
    const by = new Int32Array(this.address.length).fill(-1);
    for (let i = 0; i < count; i++) by[this.place[i]] = this.came[i] ? i : -1;
    return by.filter((i) => i >= 0);
  }

  /** After how many changes the work ended: the last at which every site held its `work_bytes`. -1: at none. */
  get workEnd() {
    if (this.work === undefined) this.work = this.findWork();
    return this.work;
  }

  findWork() {
    const { live } = this.sitesAfter(this.length);
    const wanted = this.sites.map((site) => site.work_bytes);
    let wrong = wanted.filter((bytes, i) => bytes !== live[i]).length;
    for (let i = this.length; i > this.start; i--) {
      if (!wrong) return i;
      const site = this.site[i - 1];
      if (this.bytes[i - 1] === 0) continue;
      const before = live[site] === wanted[site];
      live[site] -= this.bytes[i - 1];
      wrong += (before ? 1 : 0) - (live[site] === wanted[site] ? 1 : 0);
    }
    return wrong ? -1 : this.start;
  }
}
