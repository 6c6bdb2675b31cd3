#!/usr/bin/env python3
"""What two backends saw of the same program: event by event, site by site, total by total.

compare.py [--control OTHER_PRELOAD] PRELOAD CUPTI     dumps (dump.c) of two runs
compare.py --table FOLDER                              every NAME.preload.json with its NAME.cupti.json

Addresses differ from run to run, so an allocation's identity is its place among its thread's
allocations, and a thread's is what it did. Where the other run differs from a second run of the same
backend as well (--control, NAME.control.json), the program itself is not the same twice; only what goes
beyond that, or beyond which thread did it, is a difference of the backends. Exit status 1 if there is one that is not explained.
"""
import argparse
import collections
import difflib
import json
import pathlib
import re
import sys

OPS = ["alloc", "free", "alloc-failed", "free-failed", "mark", "implicit-free", "oom", "context",
       "map", "unmap", "launch"]

# cudart's functions and the driver's that they come down to, where the names do not say it.
SAME_FUNCTION = {
    "cudaMalloc": "cuMemAlloc", "cudaFree": "cuMemFree",
    "cudaMallocManaged": "cuMemAllocManaged",
    "cudaMallocPitch": "cuMemAllocPitch", "cudaMalloc3D": "cuMemAllocPitch",
    "cudaMallocHost": "cuMemHostAlloc", "cudaHostAlloc": "cuMemHostAlloc",
    "cuMemAllocHost": "cuMemHostAlloc", "cudaFreeHost": "cuMemFreeHost",
    "cudaHostRegister": "cuMemHostRegister", "cudaHostUnregister": "cuMemHostUnregister",
    "cudaMallocArray": "cuArray3DCreate", "cudaMalloc3DArray": "cuArray3DCreate",
    "cuArrayCreate": "cuArray3DCreate", "cudaMallocMipmappedArray": "cuMipmappedArrayCreate",
    "cudaFreeArray": "cuArrayDestroy", "cudaFreeMipmappedArray": "cuMipmappedArrayDestroy",
    "cudaMallocAsync": "cuMemAllocAsync", "cudaFreeAsync": "cuMemFreeAsync",
    "cudaMallocFromPoolAsync": "cuMemAllocFromPoolAsync",
    "cudaDeviceReset": "cuDevicePrimaryCtxReset",
    "cudaDeviceSetLimit": "cuCtxSetLimit",
}

# Differences that come from what a backend can see at all: docs/backends.md says the same in words.
EXPLAINED = [
    ("refused by cudart", "cudart answered with an error itself and made no driver call",
     lambda event, side: side == "preload" and event.op in ("alloc-failed", "free-failed") and
     event.name.startswith("cuda")),
]

Event = collections.namedtuple("Event", "op function kind level space bytes error device identity "
                                        "stream name")


def plain(name):
    """A function's name without version, stream variant and layer."""
    if name is None:
        return None
    name = re.sub(r"(_v\d+|_ptsz|_until12)+$", "", name)
    if name in SAME_FUNCTION:
        return SAME_FUNCTION[name]
    return "cu" + name[4:] if name.startswith("cuda") else name


class Identities:
    """Which allocation an event is about: its thread and its number among that thread's."""

    def __init__(self):
        self.place, self.what, self.count = {}, {}, collections.Counter()
        self.live = collections.defaultdict(list)

    def allocated(self, raw):
        thread, where = raw["thread"], (raw["space"], raw["key"])
        self.place[raw["serial"]] = (thread, self.count[thread])
        self.what[raw["serial"]] = (raw["bytes"], raw["device"])
        self.count[thread] += 1
        self.live[where].append(raw["serial"])

    def freed(self, raw):
        """A free whose address was given out again before it was noted has lost its serial: it is of
        the oldest allocation there that nobody freed."""
        live = self.live[(raw["space"], raw["key"])]
        serial = raw["serial"] or (live[0] if live else 0)
        if serial in live:
            live.remove(serial)
        return serial

    def of(self, raw, op):
        """Identity, bytes and device: a free that lost its serial does not say the latter."""
        if op == "alloc":
            self.allocated(raw)
        serial = self.freed(raw) if op == "free" else raw["serial"]
        if op not in ("alloc", "free") or serial not in self.place:
            return None, (raw["bytes"], raw["device"])
        owner, number = self.place[serial]
        return number if owner == raw["thread"] else ("other", number), self.what[serial]


def what_of(event):
    return event.bytes, event.kind, event.level, event.space, event.device


def threads_of(dump):
    """A list of each thread's events, in the order of their first. What one call frees by itself (a
    reset, a context's end) comes in no particular order and is sorted. Streams are numbered by their first
    use; a program that destroys one may get its handle for another, which is then the same here."""
    identities, streams, threads = Identities(), {}, {}
    for raw in dump["events"]:
        thread, op, stream = raw["thread"], OPS[raw["op"]], raw["stream"]
        if stream > 2:
            known = streams.setdefault(thread, {})
            stream = "stream %d" % known.setdefault(stream, len(known))
        identity, (size, device) = identities.of(raw, op)
        if op == "context":
            size = 0  # CUPTI itself takes device memory as a context starts: docs/backends.md
        events = threads.setdefault(thread, [])
        events.append(Event(op, plain(raw["function"]), raw["kind"], raw["level"], raw["space"],
                            size, raw["error"], device, identity, stream,
                            raw["function"] or ""))
        at = len(events) - 1
        while op == "implicit-free" and at and events[at - 1].op == op and \
                what_of(events[at - 1]) > what_of(events[at]):
            events[at - 1], events[at] = events[at], events[at - 1]
            at -= 1
    return list(threads.values())


def comparable(events):
    return [event[:-1] for event in events]


def alike(thread, other):
    count = collections.Counter((event.op, event.function, event.bytes) for event in thread)
    return sum((count & collections.Counter((event.op, event.function, event.bytes)
                                            for event in other)).values())


def pair_threads(left, right):
    """Threads that did the same belong together, then those that have most events in common."""
    pairs, rest = [], []
    right = list(right)
    for thread in left:
        same = next((i for i, other in enumerate(right) if comparable(other) == comparable(thread)), None)
        if same is None:
            rest.append(thread)
        else:
            pairs.append((thread, right.pop(same)))
    for thread in rest:
        nearest = max(range(len(right)), key=lambda i: alike(thread, right[i]), default=None)
        pairs.append((thread, [] if nearest is None else right.pop(nearest)))
    return pairs + [([], other) for other in right]


def event_differences(preload, cupti):
    """(side, event) of what only one of the two has, in each thread's order."""
    found = []
    for left, right in pair_threads(threads_of(preload), threads_of(cupti)):
        a, b = comparable(left), comparable(right)
        if a == b:
            continue
        for tag, i, j, k, l in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
            if tag != "equal":
                found += [("preload", event) for event in left[i:j]]
                found += [("cupti", event) for event in right[k:l]]
    return found


FIGURES = ("live_bytes", "live_count", "allocated_bytes", "allocations", "frees", "failures")


def sites_of(dump, figures=FIGURES):
    """By level, kind, device and stack; a site without any of the figures is none."""
    sites = collections.defaultdict(collections.Counter)
    for site in dump["sites"]:
        key = (site["level"], site["kind"], site["device"], tuple(site["stack"]))
        for figure in figures:
            sites[key][figure] += site[figure]
    return {key: dict(sums) for key, sums in sites.items() if any(sums.values())}


def rows_of(dump, table, leave_out=()):
    return sorted(tuple(sorted((k, v) for k, v in row.items() if k not in leave_out))
                  for row in dump[table] if table != "costs" or row["calls"] or row["ends"])


def total_differences(preload, cupti, refused=False):
    """Peaks depend on how threads interleave, what code costs on what the driver keeps in reserve: both
    are left out, and so are costs that are nothing but bytes (first launches, streams). `refused`: failures were explained one by one already."""
    found = []
    for table in ("usage", "errors", "implicit", "contexts", "vmm", "pools", "costs", "torch"):
        leave_out = ("peak_bytes", "bytes") if table == "costs" else ("peak_bytes",)
        if refused and table == "errors":
            continue
        leave_out += ("failures",) if refused else ()
        a, b = rows_of(preload, table, leave_out), rows_of(cupti, table, leave_out)
        found += [(table, "preload", row) for row in a if row not in b]
        found += [(table, "cupti", row) for row in b if row not in a]
    return found


def site_differences(preload, cupti, refused=False):
    figures = FIGURES[:-1] if refused else FIGURES
    a, b = sites_of(preload, figures), sites_of(cupti, figures)
    return [(key, a.get(key), b.get(key)) for key in sorted(set(a) | set(b), key=str)
            if a.get(key) != b.get(key)]


def without_threads(dump):
    """How often each thing happened, whichever thread did it."""
    return collections.Counter(event[:8] for thread in threads_of(dump) for event in thread)


def explanation(side, event):
    return next((name for name, _, matches in EXPLAINED if matches(event, side)), None)


class Result:
    def __init__(self, preload, cupti, control=None):
        self.preload, self.cupti = preload, cupti
        self.explained, self.events = collections.Counter(), []
        for side, event in event_differences(preload, cupti):
            name = explanation(side, event)
            if name:
                self.explained[name] += 1
            else:
                self.events.append((side, event))
        self.sites = site_differences(preload, cupti, bool(self.explained))
        self.totals = total_differences(preload, cupti, bool(self.explained))
        self.noise = (0, 0, 0)
        if control:
            self.noise = (len(event_differences(preload, control)),
                          len(site_differences(preload, control)),
                          len(total_differences(preload, control)))

    def verdict(self, table):
        if table and not self.cupti["cupti"]:
            return "CUPTI FELL BACK"
        return "same" if self.same() else "DIFFERENT"

    def same(self):
        counts = (len(self.events), len(self.sites), len(self.totals))
        return self.rescheduled() or all(count <= noise for count, noise in zip(counts, self.noise))

    def rescheduled(self):
        """The program's own threads share the work differently each time (a second run of the same
        backend differs too), and all of them together did the same."""
        return (self.noise[0] > 0 and len(self.sites) <= self.noise[1] and
                len(self.totals) <= self.noise[2] and
                without_threads(self.preload) == without_threads(self.cupti))

    def row(self, name, table):
        return [name, self.preload["backend"] + "/" + self.cupti["backend"],
                len(self.preload["events"]), len(self.cupti["events"]),
                len(self.events), sum(self.explained.values()),
                "%d/%d" % (len(sites_of(self.preload)), len(sites_of(self.cupti))), len(self.sites),
                len(self.totals), "/".join(map(str, self.noise)), self.verdict(table)]

    def details(self, most=12):
        for side, event in self.events[:most]:
            yield "  only %-7s %s" % (side, " ".join("%s=%s" % pair for pair in event._asdict().items()))
        for key, a, b in self.sites[:most]:
            yield "  site level %d kind %d device %d: preload %s, cupti %s" % (*key[:3], a, b)
            for frame in key[3][:8]:
                yield "      " + frame
        for table, side, row in self.totals[:most]:
            yield "  %s, only %s: %s" % (table, side, dict(row))


HEAD = ["program", "backends", "events 1", "events 2", "differ", "explained", "sites", "differ",
        "totals differ", "noise", ""]


def print_table(rows):
    widths = [max(len(str(row[i])) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(str(cell).ljust(width) for cell, width in zip(row, widths)).rstrip())


def load(path):
    dump = json.loads(pathlib.Path(path).read_text())
    if dump["events_lost"]:
        print("%s: the ring lost %d events; only the last are compared" % (path, dump["events_lost"]))
    return dump


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--control")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("dumps", nargs="+")
    options = parser.parse_args()
    results, missing = [], False
    if options.table:
        for path in sorted(pathlib.Path(options.dumps[0]).glob("*.preload.json")):
            name = path.name[:-len(".preload.json")]
            cupti, control = (path.with_name(name + end) for end in (".cupti.json", ".control.json"))
            if not cupti.exists():
                print("%s: there is no dump of the CUPTI run" % name)
                missing = True
                continue
            results.append((name, Result(load(path), load(cupti),
                                         load(control) if control.exists() else None)))
    else:
        preload, cupti = options.dumps
        results.append((pathlib.Path(preload).name.split(".")[0],
                        Result(load(preload), load(cupti), load(options.control) if options.control
                               else None)))
    print_table([HEAD] + [result.row(name, options.table) for name, result in results])
    for name, result in results:
        lines = list(result.details())
        if lines:
            print("\n%s:" % name)
            print("\n".join(lines))
    good = [result.verdict(options.table) == "same" for _, result in results]
    return 0 if good and all(good) and not missing else 1


if __name__ == "__main__":
    sys.exit(main())
