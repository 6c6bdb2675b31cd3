"""Holds what --at says of a moment against a document that was made of that moment independently.

compare.py DOCUMENT_AT DOCUMENT [ring] [no-peaks]: usage, totals, PyTorch, virtual memory, holes, sites, categories and
marks must be equal, except for what no history holds: physical peaks, levels at their peaks, pools, counts of retries; and of
a ring, reserved address space and with it where segments end, and once events have left it, peaks.
"""
import json
import sys

LISTS = ["usage", "totals", "torch", "vmm", "fragmentation", "sites", "categories"]
NOT_HELD = {"physical_peak_bytes", "utilization_percent", "alloc_retries", "ooms", "at_peak"}
NOT_IN_RING = {"reserved_va_bytes"}
PEAKS = {"peak_bytes", "peak_at_s", "bytes_at_peak", "allocated_peak_bytes", "reserved_peak_bytes", "windows", "last_s",
         "verdict", "why"}

then, there = (json.load(open(path)) for path in sys.argv[1:3])
left_out = NOT_HELD | (NOT_IN_RING if "ring" in sys.argv[3:] else set())
if "no-peaks" in sys.argv[3:]:
    left_out |= PEAKS
    assert all(row["peak_bytes"] is None for row in then["usage"] + then["totals"] + then["sites"])
differences = []


def compare(place, a, b):
    if isinstance(a, dict) and isinstance(b, dict):
        for key in b:
            if key not in left_out and not (key == "physical_bytes" and a.get(key) is None):
                compare(f"{place}.{key}", a.get(key), b[key])
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for i, (x, y) in enumerate(zip(a, b)):
            compare(f"{place}[{i}]", x, y)
    elif a != b:
        differences.append(f"{place}: --at says {a}, the document {b}")


for key in LISTS:
    a, b = ([row for row in rows if row.get("level") != "pool" and not (key == "fragmentation" and not row["reserved_bytes"])]
            for rows in (then[key], there[key]))
    compare(key, a, b)
print("\n".join(differences[:20]))
assert there["sites"], "nothing to compare"
sys.exit(1 if differences else 0)
