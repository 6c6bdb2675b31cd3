"""The report of a leaking program against what it says it forgot:
compare.py family NAME SAID DOCUMENT   compare.py torch DOCUMENT LINE   compare.py marks SAID DOCUMENT
"""
import sys

from holds import anywhere, end, equal, guarded, holds, load, said, sites, total


def family(name, said_path, path):
    facts, document = said(said_path), load(path)
    kind = facts["kind"]
    ours = [s for s in sites(document, level="driver", kind=kind) if s["live_count"]]
    named = [s for s in ours if any(facts["function"] == (f["function"] or "").split("(")[0]
                                    for f in s["stack"] or [])]
    equal(f"{name}: leaked bytes and blocks of kind {kind} at {facts['function']}",
          [facts["bytes"], facts["count"]], [total(named, "live_bytes"), total(named, "live_count")])
    equal(f"{name}: leaks.exit_bytes", facts["bytes"], document["leaks"]["exit_bytes"])
    equal(f"{name}: leaks.exit_count", facts["count"], document["leaks"]["exit_count"])


def torch(path, line):
    """The sites that grow, and whether one of them is the line that appends."""
    document = load(path)
    growing = [s for s in document["sites"] if s["verdict"] == "grow"]
    there = [s for s in growing if anywhere(s["stack"], "torch_loop.py", int(line))]
    holds(f"torch-leak: a growing site is at torch_loop.py:{line}", there,
          f"{len(there)} of {len(growing)} growing sites, {total(there, 'live_bytes')} bytes live")
    finding = next((f for f in document["findings"] if f["id"] == "leak.grow"), None)
    holds("torch-leak: finding leak.grow", finding, finding and finding["title"])


def marks(said_path, path):
    facts, document = said(said_path), load(path)
    ours = [m for m in document["marks"] if m["name"] == "step"]
    equal("torch-nvtx: marks named step, one for each end of a range", facts["steps"], len(ours))
    times = [m["time_s"] for m in ours]
    holds("torch-nvtx: marks in order", times == sorted(times), [round(t, 2) for t in times])


if __name__ == "__main__":
    guarded({"family": family, "torch": torch, "marks": marks}[sys.argv[1]], *sys.argv[2:])
    end()
