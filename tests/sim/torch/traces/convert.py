"""Turns a PyTorch snapshot into a trace for the simulated allocator (c10_cuda.c reads it).

convert.py PICKLE JSON TRACE: reads the snapshot's device_traces and the figures beside it, writes
one event a line, and checks on the way that the figures come out. The snapshots were made once,
by PyTorch 2.11 on an H200; the traces are what the repository keeps.

  R id bytes handle     address space of an expandable segment, and the size of its handles
  S id bytes            cudaMalloc of a segment         F id               its cudaFree
  M id offset bytes     handles made and mapped         U id offset bytes  unmapped and released
  X bytes               a cudaMalloc that fails         H bytes handle     the same with handles
  A id segment offset bytes site   a block handed out   D id               a block given back
  O bytes               an OOM reported                 K name             a mark

Hand-written traces also have
  N device              the current device              C id bytes         a block of the CPU's
  P id bytes            a cudaMallocAsync               Q id               its cudaFreeAsync
  G mode                a capture begins                V id               it ends, as an executable graph
  J block nodes         work that is captured           W id               an executable is destroyed
  T id bytes eager      a segment, by another thread, whose stream is captured unless eager is 1
"""
import json
import pickle
import sys

MIB = 1 << 20
SITES = 8


def round_up(size, unit):
    return (size + unit - 1) // unit * unit


class Allocator:
    """Just enough of PyTorch's allocator to know how large a block came out."""

    def __init__(self, expandable):
        self.expandable = expandable
        self.free = {}      # address: bytes, merged
        self.blocks = {}    # address: bytes
        self.segments = {}  # address: [bytes, id], mapped ranges where expandable
        self.allocated = self.reserved = self.peak = self.reserved_peak = 0

    def give(self, address, size):
        """A free range, merged with its neighbours in the same segment."""
        for start, length in list(self.free.items()):
            if start + length == address and not self.is_border(address):
                address, size = start, size + length
            elif address + size == start and not self.is_border(start):
                size += length
            else:
                continue
            del self.free[start]
        self.free[address] = size

    def is_border(self, address):
        return not self.expandable and address in self.segments

    def add_segment(self, address, size):
        self.reserved += size
        self.reserved_peak = max(self.reserved, self.reserved_peak)
        if not self.expandable:
            self.segments[address] = size
        self.give(address, size)

    def drop_segment(self, address, size):
        self.reserved -= size
        start = next(s for s, length in self.free.items() if s <= address < s + length)
        length = self.free.pop(start)
        if address > start:
            self.free[start] = address - start
        if address + size < start + length:
            self.free[address + size] = start + length - address - size
        self.segments.pop(address, None)

    def alloc(self, address, requested):
        size = max(round_up(requested, 512), 512)
        room = self.free.pop(address)
        rest = room - size
        split = rest >= 512 if size <= MIB or self.expandable else rest > MIB
        if split:
            self.free[address + size] = rest
        else:
            size = room
        self.blocks[address] = size
        self.allocated += size
        self.peak = max(self.peak, self.allocated)
        return size


class Converter:
    def __init__(self, snapshot, figures):
        self.events = snapshot["device_traces"][0]
        self.marks = figures["marks"]
        self.expandable = figures["mode"] == "expandable"
        self.allocator = Allocator(self.expandable)
        self.lines, self.next_mark = [], 0
        self.counts = {"alloc": 0, "free_requested": 0, "oom": 0}
        self.ids, self.last_id, self.sites = {}, 0, {}
        self.ranges = []

    def new_id(self, key):
        self.last_id += 1
        self.ids[key] = self.last_id
        return self.last_id

    def site(self, event):
        frames = tuple((f["filename"], f["line"]) for f in event["frames"])
        return self.sites.setdefault(frames, len(self.sites)) % SITES

    def place(self, address):
        """Segment's id and the offset in it."""
        if self.expandable:
            start, number = next((s, n) for s, end, n in self.ranges if s <= address < end)
            return number, address - start
        start = max(s for s in self.allocator.segments if s <= address)
        return self.ids["S", start], address - start

    def add_ranges(self):
        """Address space is reserved for each expandable segment: as much as is ever mapped."""
        spans = []
        for event in sorted((e for e in self.events if e["action"] == "segment_map"),
                            key=lambda e: e["addr"]):
            start, end = event["addr"], event["addr"] + event["size"]
            if spans and spans[-1][1] >= start:
                spans[-1][1] = max(end, spans[-1][1])
            else:
                spans.append([start, end, event["size"]])
        for start, end, size in spans:
            number = self.new_id(("R", start))
            self.ranges.append((start, end, number))
            self.lines.append(f"R {number} {end - start} {(2 if size == 2 * MIB else 20) * MIB}")

    def retried(self, index):
        """True where segments are flushed for a request: frees right before a segment_alloc."""
        rest = self.events[index:]
        after = next(e for e in rest if e["action"] != "segment_free")
        before = self.events[index - 1]["action"]
        return before != "segment_free" and after["action"] == "segment_alloc" and \
            self.mark()["num_alloc_retries"] > self.known_retries() and after["size"]

    def known_retries(self):
        return self.marks[self.next_mark - 1]["num_alloc_retries"] if self.next_mark else 0

    def mark(self):
        return self.marks[self.next_mark]

    def convert(self):
        if self.expandable:
            self.add_ranges()
        for index, event in enumerate(self.events):
            getattr(self, event["action"])(index, event)
            while self.next_mark < len(self.marks) and self.reached(index):
                self.check(self.mark())
                self.lines.append("K " + self.mark()["tag"])
                self.next_mark += 1
        if self.next_mark != len(self.marks):
            raise SystemExit(f"mark {self.mark()['tag']} was not reached")

    def reached(self, index):
        mark = self.mark()
        last = self.next_mark == len(self.marks) - 1
        return (not last or index == len(self.events) - 1) and \
            [mark["allocation.all.allocated"], mark["allocation.all.freed"], mark["num_ooms"],
             mark["reserved_bytes.all.current"]] == \
            [self.counts["alloc"], self.counts["free_requested"], self.counts["oom"],
             self.allocator.reserved]

    def check(self, mark):
        ours = self.allocator
        for name, value in (("allocated_bytes.all.current", ours.allocated),
                            ("allocated_bytes.all.peak", ours.peak),
                            ("reserved_bytes.all.current", ours.reserved),
                            ("reserved_bytes.all.peak", ours.reserved_peak)):
            if mark[name] != value:
                raise SystemExit(f"{mark['tag']}: {name} is {mark[name]}, here {value}")

    def alloc(self, _, event):
        self.counts["alloc"] += 1
        segment, offset = self.place(event["addr"])
        size = self.allocator.alloc(event["addr"], event["size"])
        number = self.new_id(("A", event["addr"]))
        self.lines.append(f"A {number} {segment} {offset} {size} {self.site(event)}")

    def free_requested(self, _, event):
        self.counts["free_requested"] += 1
        self.allocator.allocated -= self.allocator.blocks[event["addr"]]
        self.lines.append(f"D {self.ids['A', event['addr']]}")

    def free_completed(self, _, event):
        self.allocator.give(event["addr"], self.allocator.blocks.pop(event["addr"]))

    def segment_alloc(self, _, event):
        self.lines.append(f"S {self.new_id(('S', event['addr']))} {event['size']}")
        self.allocator.add_segment(event["addr"], event["size"])

    def segment_free(self, index, event):
        size = self.retried(index)
        if size:
            self.lines.append(f"X {size}")
        self.lines.append(f"F {self.ids['S', event['addr']]}")
        self.allocator.drop_segment(event["addr"], event["size"])

    def segment_map(self, _, event):
        segment, offset = self.place(event["addr"])
        self.lines.append(f"M {segment} {offset} {event['size']}")
        self.allocator.add_segment(event["addr"], event["size"])

    def segment_unmap(self, index, event):
        if self.events[index + 1]["action"] == "oom":
            self.lines.append(f"H {self.events[index + 1]['size']} {20 * MIB}")
        segment, offset = self.place(event["addr"])
        self.lines.append(f"U {segment} {offset} {event['size']}")
        self.allocator.drop_segment(event["addr"], event["size"])

    def oom(self, index, event):
        self.counts["oom"] += 1
        if event["size"] > event["device_free"]:  # else a limit's doing: no call at all
            fails = f"H {event['size']} {20 * MIB}" if self.expandable else f"X {event['size']}"
            flushed = self.events[index - 1]["action"] in ("segment_unmap", "segment_free")
            self.lines += [fails] if flushed else [fails, fails]
        self.lines.append(f"O {event['size']}")


def main():
    with open(sys.argv[1], "rb") as file:
        snapshot = pickle.load(file)
    with open(sys.argv[2]) as file:
        converter = Converter(snapshot, json.load(file))
    converter.convert()
    with open(sys.argv[3], "w") as out:
        out.write("\n".join(converter.lines) + "\n")


if __name__ == "__main__":
    main()
