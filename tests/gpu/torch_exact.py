"""Holds what the shim recorded of a scenario against PyTorch's own figures, mark by mark.

torch_exact.py FOLDER REPORT SCENARIO... reads what torch_scenarios.py wrote; PASS or FAIL a figure,
status 1 if one differs. Equal means equal to the byte.
"""
import json
import subprocess
import sys

MIB = 1 << 20
UNEXPLAINED_LIMIT = 32 * MIB

# our key in torch[]: PyTorch's in memory_stats()
FIGURES = {
    "allocated_bytes": "allocated_bytes.all.current",
    "allocated_peak_bytes": "allocated_bytes.all.peak",
    "reserved_bytes": "reserved_bytes.all.current",
    "reserved_peak_bytes": "reserved_bytes.all.peak",
    "allocations": "allocation.all.allocated",
    "frees": "allocation.all.freed",
    "allocated_total_bytes": "allocated_bytes.all.allocated",
    "freed_total_bytes": "allocated_bytes.all.freed",
    "reserved_total_bytes": "reserved_bytes.all.allocated",
    "inactive_split_bytes": "inactive_split_bytes.all.current",
    "alloc_retries": "num_alloc_retries",
    "ooms": "num_ooms",
}

failures = 0


def check(what, theirs, ours):
    global failures
    equal = theirs == ours
    failures += not equal
    print(f"{'PASS' if equal else 'FAIL'}  {what}: {theirs}" + ("" if equal else f", ours {ours}"))


def holds(what, condition, evidence):
    global failures
    failures += not condition
    print(f"{'PASS' if condition else 'FAIL'}  {what}: {evidence}")


def document_of(report, path):
    done = subprocess.run([report, "summary", "--json", path], capture_output=True, check=True)
    return json.loads(done.stdout)


def check_holes(name, document, segments):
    """Segments and holes against memory_snapshot()."""
    blocks = [b for s in segments for b in s["blocks"]]
    row = next((f for f in document["fragmentation"] if f["level"] == "torch"), {})
    reserved = sum(s["bytes"] for s in segments)
    used = sum(size for size, state in blocks if state == "active_allocated")
    holes = [size for size, state in blocks if state == "inactive"]
    whole = [s["blocks"][0][0] for s in segments
             if len(s["blocks"]) == 1 and s["blocks"][0][1] == "inactive"]
    check(f"{name}: segments", len(segments), document["torch"][0]["segments"])
    check(f"{name}: segments' bytes", reserved, row.get("reserved_bytes"))
    check(f"{name}: used in them", used, row.get("used_bytes"))
    if any(state == "active_pending_free" for _, state in blocks):
        return  # not free to PyTorch, freed to us
    check(f"{name}: largest hole", max(holes, default=0), row.get("largest_free_bytes") or 0)
    check(f"{name}: releasable", sum(whole), document["torch"][0]["releasable_bytes"])


def check_ledger(name, document):
    for row in document["ledger"]:
        holds(f"{name}: ledger ({row['source']})", abs(row["unexplained_bytes"]) < UNEXPLAINED_LIMIT,
              f"{row['process_used_bytes']} used, {row['unexplained_bytes']} unexplained")


def check_mark(scenario, mark, document):
    name = f"{scenario}, {mark['name']}"
    stats = mark["stats"]
    for ours, theirs in FIGURES.items():
        check(f"{name}: {theirs}", stats[theirs], document["torch"][0][ours])
    check(f"{name}: retries", [stats["num_alloc_retries"], stats["num_ooms"]],
          [document["retries"]["attempts"], document["retries"]["exhausted"]])
    check_holes(name, document, mark["segments"])
    check_ledger(name, document)


def check_ooms(scenario, facts, document):
    verdicts = [oom["verdict"] for oom in document["ooms"]]
    print(f"      {scenario}: ooms {verdicts}")
    if facts.get("fraction"):
        check(f"{scenario}: the last OOM's verdict", "limit", verdicts[-1] if verdicts else None)


def check_async(facts, documents):
    for key, document in zip(("live", "left"), documents):
        torch = document["torch"][0]
        check(f"async: allocated ({key})", facts[key], torch["allocated_bytes"])
        print(f"      async: allocator {torch['allocator']}")


def check_capacity(facts, document, limit=20):
    holds("capacity: blocks of 1 GiB", limit - 2 <= facts["blocks"] < limit, facts["blocks"])
    check("capacity: total", limit << 30, facts["total"])
    holds("capacity: free", facts["free"] < 2 << 30, facts["free"])
    check("capacity: attempts, recovered, exhausted", [2, 1, 1],
          [document["retries"][k] for k in ("attempts", "recovered", "exhausted")])


def main():
    folder, report = sys.argv[1:3]
    for scenario in sys.argv[3:]:
        with open(f"{folder}/{scenario}.json") as file:
            run = json.load(file)
        print(f"== {scenario}: PyTorch {run['torch']}, {run['device']}")
        documents = [document_of(report, mark["file"]) for mark in run["marks"]]
        if scenario == "async":
            check_async(run["facts"], documents)
        elif scenario == "capacity":
            check_capacity(run["facts"], documents[-1])
        else:
            for mark, document in zip(run["marks"], documents):
                check_mark(scenario, mark, document)
            check_ooms(scenario, run["facts"], documents[-1])
    print(f"{failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
