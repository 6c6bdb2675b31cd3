"""What a trace of PyTorch's allocator holds at its peak, worked out from the trace alone.

peak.py TRACE prints [reserved, used, largest hole, external percent or null] as JSON for the last block
that brought the allocated bytes of device 0 to their highest value. Letters: tests/sim/torch/traces/convert.py.
"""
import json
import sys

segments, ranges, blocks = {}, {}, {}  # id -> bytes; id -> {offset: bytes}; id -> (segment, offset, bytes)
allocated = peak = last = 0


def stretches():
    """Each piece of memory that lies in one row: (id, start, end)."""
    for number, size in segments.items():
        yield number, 0, size
    for number, mapped in ranges.items():
        start = end = None
        for offset, size in sorted(mapped.items()):
            if offset == end:
                end += size
                continue
            if start is not None:
                yield number, start, end
            start, end = offset, offset + size
        if start is not None:
            yield number, start, end


def figures():
    reserved, holes = 0, []
    for number, start, end in stretches():
        reserved += end - start
        at = start
        for offset, size in sorted(b[1:] for b in blocks.values() if b[0] == number and start <= b[1] < end):
            holes.append(offset - at)
            at = offset + size
        holes.append(end - at)
    free, largest = reserved - allocated, max(holes)
    assert sum(holes) == free
    return [reserved, allocated, largest, round(100 * (1 - largest / free), 6) if free else None]


def parsed(line):
    letter, *words = line.split()
    return letter, [int(word) for word in words] if letter in "SFRMUAD" else []


with open(sys.argv[1], encoding="utf-8") as file:
    steps = [parsed(line) for line in file]
sizes = {}
for number, (letter, n) in enumerate(steps):
    if letter == "A":
        sizes[n[0]] = n[3]
        allocated += n[3]
        if allocated >= peak:
            peak, last = allocated, number
    elif letter == "D":
        allocated -= sizes[n[0]]
allocated = 0
for letter, n in steps[: last + 1]:
    if letter == "S":
        segments[n[0]] = n[1]
    elif letter == "F":
        del segments[n[0]]
    elif letter == "R":
        ranges[n[0]] = {}
    elif letter == "M":
        ranges[n[0]][n[1]] = n[2]
    elif letter == "U":
        # What is mapped is unmapped in pieces of its own: those that start in the range, cut at its ends.
        for offset, size in list(ranges[n[0]].items()):
            if offset < n[1] + n[2] and n[1] < offset + size:
                del ranges[n[0]][offset]
                if offset < n[1]:
                    ranges[n[0]][offset] = n[1] - offset
                if offset + size > n[1] + n[2]:
                    ranges[n[0]][n[1] + n[2]] = offset + size - n[1] - n[2]
    elif letter == "A":
        blocks[n[0]] = (n[1], n[2], n[3])
        allocated += n[3]
    elif letter == "D":
        allocated -= blocks.pop(n[0])[2]
print(json.dumps(figures(), separators=(",", ":")))
