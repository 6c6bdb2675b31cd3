"""The report's ranges against what PyTorch said inside the program: compare.py ranges DOCUMENT SAID; what was
searched against what was planned: compare.py plan PLAN SEARCH."""
import sys

from holds import end, equal, guarded, holds, load, said, total


def ranges(path, program):
    document, theirs = load(path), said(program)
    ours = {}
    for row in document["ranges"]:
        ours.setdefault(row["name"], row)
    # cuBLAS's own memory, 64 MiB + 129 KiB for each handle, counts as in use, and PyTorch's figure leaves it out. It is
    # allocated before the first range.
    outside = total(document["totals"], "current_bytes") - total(document["torch"], "reserved_bytes")
    for name, times in theirs["ranges"].items():
        row = ours.get(name)
        if row is None:
            holds(f"range {name}", False, "not in the report")
            continue
        equal(f"range {name}: times", len(times), row["closed"])
        equal(f"range {name}: retained", sum(time["retained"] for time in times), row["retained_bytes"])
        equal(f"range {name}: highest peak", max(time["peak"] for time in times) + outside, row["peak_bytes"])
        added = max(time["peak"] - time["start"] for time in times)
        equal(f"range {name}: most added", added, row["most_added_bytes"])
    steps = ours["step #"]
    equal("steps", 12, steps["closed"])
    equal("the step that keeps memory", "step 7", steps["most_retained"]["name"] if steps["retained_bytes"] else None)
    holds("ranges of emit_nvtx", any(row["name"].startswith("aten::") for row in document["ranges"]),
          sorted({row["name"] for row in document["ranges"]})[:8])
    # emit_nvtx writes "evaluation, op_id = 1"
    holds("record_function is a range", any(name.split(", ")[0] == "evaluation" for name in ours), "evaluation")


def plan(planned, searched):
    made, found = load(planned)["plan"], load(searched)["plan_search"]
    largest = found["largest_batch"]
    if not holds("a search by running finds a batch", largest is not None, found["runs"]):
        return
    if not holds("a plan has a largest batch", made["max_batch"] is not None, made["max_batch"]):
        return
    holds("the batch that is printed fits", made["safe_batch"] <= largest, f"{made['safe_batch']}, found {largest}")
    holds("the bound is within 10 %", abs(made["max_batch"] - largest) <= 0.1 * largest,
          f"{made['max_batch']}, found {largest}")
    holds("no run failed otherwise", all(run["outcome"] != "failed" for run in found["runs"]), len(found["runs"]))


if __name__ == "__main__":
    guarded({"ranges": ranges, "plan": plan}[sys.argv[1]], *sys.argv[2:])
    end()
