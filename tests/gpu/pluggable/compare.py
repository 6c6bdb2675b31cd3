"""compare.py current|mempool SAID DOCUMENT: our figures of an allocator that the program gave to PyTorch against
its own counters, and of a MemPool against PyTorch's statistics."""
import sys

from holds import end, equal, guarded, holds, load, said


def current(facts, document):
    rows = document["torch"]
    equal("current: allocator", ["pluggable"], [row["allocator"] for row in rows])
    row = rows[0]
    equal("current: held, peak, total", [facts["own_bytes"], facts["own_peak_bytes"], facts["own_total_bytes"]],
          [row["reserved_bytes"], row["reserved_peak_bytes"], row["reserved_total_bytes"]])
    equal("current: what nobody tells is null", [None] * 4,
          [row[key] for key in ("allocated_bytes", "allocated_peak_bytes", "allocations", "ooms")])
    equal("current: the finding", 1, sum(one["id"] == "pool.pluggable" for one in document["findings"]))


def mempool(facts, document):
    row = document["torch"][0]
    keys = ["allocated_bytes", "allocated_peak_bytes", "reserved_bytes", "reserved_peak_bytes"]
    equal("mempool: allocated, reserved, their peaks", [facts[key] for key in keys], [row[key] for key in keys])
    peak = next(one for one in document["fragmentation"] if one["level"] == "torch")["at_peak"]
    equal("mempool: used at the peak", facts["allocated_peak_bytes"], peak["used_bytes"])
    holds("mempool: the layout of the peak adds up", peak["largest_free_bytes"] is not None or not peak["free_bytes"],
          f"{peak['free_bytes']} free, largest {peak['largest_free_bytes']}, external {peak['external_percent']} %")
    holds("mempool: the own allocator was asked", facts["own_bytes"] > 0, f"{facts['own_bytes']} B")


def compared(mode, said_path, path):
    {"current": current, "mempool": mempool}[mode](said(said_path), load(path))


if __name__ == "__main__":
    guarded(compared, *sys.argv[1:])
    end()
