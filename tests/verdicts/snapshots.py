#!/usr/bin/env python3
"""Measures the report on snapshots of PyTorch's that others made: snapshots.py TOOL FOLDER

TOOL is gpumem-report; each file of FOLDER is a pickle of torch.cuda.memory._dump_snapshot(). A line for each says
whether the reserved bytes and the bytes of live blocks are those of an independent reading of the pickle, and which
findings of growth there are; the last line counts. Pickles can run code: read only files that you trust.
"""
import json
import pathlib
import pickle
import subprocess
import sys

GROWTH = ("leak.grow", "usage.creeping")


def figures(path):
    """(reserved bytes, bytes of blocks that are allocated, entries of the history), from the pickle alone."""
    with open(path, "rb") as file:
        snapshot = pickle.load(file)
    segments = snapshot["segments"] if isinstance(snapshot, dict) else snapshot
    traces = snapshot.get("device_traces", []) if isinstance(snapshot, dict) else []
    return (sum(segment["total_size"] for segment in segments),
            sum(block["size"] for segment in segments for block in segment["blocks"]
                if block["state"] == "active_allocated"),
            sum(len(trace) for trace in traces))


def main():
    tool, folder = sys.argv[1:]
    count = equal = growing = 0
    for path in sorted(p for p in pathlib.Path(folder).iterdir() if p.is_file()):
        reserved, allocated, entries = figures(path)
        done = subprocess.run([tool, "summary", "--json", str(path)], capture_output=True, text=True, check=True)
        document = json.loads(done.stdout)
        ours = (sum(row["reserved_bytes"] for row in document["torch"]),
                sum(row["allocated_bytes"] for row in document["torch"]))
        grows = [f["title"] for f in document["findings"] if f["id"] in GROWTH]
        same = ours == (reserved, allocated)
        count, equal, growing = count + 1, equal + same, growing + bool(grows)
        print(f"{path.name}: {entries} entries, {reserved} bytes reserved, {allocated} allocated: "
              + ("equal" if same else f"told as {ours}") + "".join(f"; {title}" for title in grows))
    print(f"{count} snapshots, {equal} with equal figures, {growing} with growth")
    return 0 if equal == count else 1


if __name__ == "__main__":
    sys.exit(main())
