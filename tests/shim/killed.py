"""Holds the report of a killed program against the books its threads kept in a shared file.

A thread that was inside a call when the kill came may have that one allocation or free in the file or
not; everything that had returned must be there.
"""
import json
import struct
import sys

THREADS = 4

books = open(sys.argv[1], "rb").read()
document = json.load(open(sys.argv[2]))
assert document["process"]["end"] == "killed", document["process"]["end"]
assert not document["file"]["clean_exit"]

sites = [s for s in document["sites"] if s["kind"] == "device"]
live = sum(s["live_bytes"] for s in sites)
count = sum(s["live_count"] for s in sites)
total = document["totals"][0]
assert total["current_bytes"] == live, (total, live)
assert total["current_count"] == count, (total, count)

least = most = 0
for i in range(THREADS):
    allocations, frees, begun = struct.unpack_from("<3Q", books, i * 64)
    # at most one call of each thread had begun and not returned
    least += allocations - frees - (1 if begun > allocations + frees else 0)
    most += allocations - frees + (1 if begun > allocations + frees else 0)
assert least <= count <= most, (least, count, most)
