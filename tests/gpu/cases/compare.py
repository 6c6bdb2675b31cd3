"""The report of a case against what docs/cases.md says it must tell: compare.py NUMBER SAID DOCUMENT TEXT"""
import sys

from holds import MIB, anywhere, end, equal, finding, guarded, holds, load, place, said, sites, total

SCRIPT = "cases.py"


def level_row(document, level):
    return next(row for row in document["fragmentation"] if row["level"] == level and row["device"] == 0)


def by_id(document, identity):
    return next(s for s in document["sites"] if s["id"] == identity)


def growing(document):
    return [s for s in document["sites"] if s["verdict"] == "grow"]


def advice(found):
    return " | ".join(found["advice"]) if found else ""


def split_segment(name, facts, document):
    row = level_row(document, "torch")
    equal(f"{name}: the largest hole", facts["hole"], row["largest_free_bytes"])
    pinned = [by_id(document, pin["site"]) for pin in row["pinned_by"]]
    holds(f"{name}: pinned by {SCRIPT}:{facts['line']}",
          any(anywhere(s["stack"], SCRIPT, facts["line"]) for s in pinned),
          [place(s["stack"], SCRIPT) for s in pinned])
    found = finding(document, "fragmentation.high")
    holds(f"{name}: finding fragmentation.high", found, found and found["title"])
    return advice(found)


def case_21(facts, document, text):
    said_advice = split_segment("case 21", facts, document)
    holds("case 21: advice max_split_size_mb", "max_split_size_mb" in said_advice, said_advice)


def case_39(facts, document, text):
    said_advice = split_segment("case 39", facts, document)
    holds("case 39: advice knows what is set", "max_split_size_mb, which is set" in said_advice and
          "or max_split_size_mb" not in said_advice, said_advice)


def case_22(facts, document, text):
    oom = document["ooms"][-1]
    equal("case 22: verdict", "fragmented", oom["verdict"])
    row = level_row(document, "torch")
    idle = row["reserved_bytes"] - row["used_bytes"]
    holds("case 22: largest hole < request <= idle", row["largest_free_bytes"] < facts["request"] <= idle,
          f"{row['largest_free_bytes']} < {facts['request']} <= {idle}")
    equal("case 22: allocated", facts["allocated"], document["torch"][0]["allocated_bytes"])
    equal("case 22: reserved", facts["reserved"], document["torch"][0]["reserved_bytes"])
    pinned = [by_id(document, pin["site"]) for pin in row["pinned_by"]]
    holds(f"case 22: pinned by {SCRIPT}:{facts['line']}",
          any(anywhere(s["stack"], SCRIPT, facts["line"]) for s in pinned),
          [place(s["stack"], SCRIPT) for s in pinned])
    print(f"      advice: {advice(finding(document, 'oom'))}")


def case_23(facts, document, text):
    left = [s for s in sites(document, level="torch") if s["live_bytes"]]
    equal("case 23: what PyTorch has left", facts["allocated"], total(left, "live_bytes"))
    workspace = [s for s in left if s["category"] == "workspace"]
    holds("case 23: it is held, a workspace", workspace and {s["verdict"] for s in workspace} == {"held"},
          [(s["live_bytes"], s["category"], s["verdict"], s["library"]) for s in left])
    holds("case 23: nothing grows", not growing(document), [s["id"] for s in growing(document)])


def case_24(facts, document, text):
    equal("case 24: the error", "OutOfMemoryError", facts["error"])
    found = finding(document, "oom")
    holds("case 24: advice names the traceback", "traceback" in advice(found), advice(found))
    holds(f"case 24: and {SCRIPT}:{facts['line']}", f"{SCRIPT}:{facts['line']}" in advice(found), advice(found))
    kept = [s for s in sites(document, level="torch") if anywhere(s["stack"], SCRIPT, facts["line"])]
    equal("case 24: bytes of that line still live", facts["kept"], total(kept, "live_bytes"))


def case_25(facts, document, text):
    there = [s for s in growing(document) if anywhere(s["stack"], SCRIPT, facts["line"])]
    holds(f"case 25: grows at {SCRIPT}:{facts['line']}", there,
          f"{total(there, 'live_bytes')} B at {len(there)} of {len(growing(document))} growing sites")
    # the first layer's gradient needs its input, so the graph keeps that as well
    data = [s for s in growing(document) if anywhere(s["stack"], SCRIPT, facts["data_line"])]
    equal("case 25: the inputs that the graphs keep", 200 * 128 * 256 * 4, total(data, "live_bytes"))
    holds("case 25: nothing else grows", len(there) + len(data) == len(growing(document)),
          [place(s["stack"], SCRIPT) for s in growing(document)])


def case_26(facts, document, text):
    there = [s for s in growing(document) if anywhere(s["stack"], SCRIPT, facts["line"])]
    holds("case 26: the block level grows", [s for s in there if s["level"] == "torch"],
          [(s["level"], s["live_bytes"]) for s in there])
    equal("case 26: bytes", facts["grown"], total([s for s in there if s["level"] == "torch"], "live_bytes"))
    holds("case 26: the report does not say that there is no leak", "no leak" not in text,
          [line for line in text.splitlines()[:12] if "leak" in line])


def case_27(facts, document, text):
    state = [s for s in sites(document, level="torch", category="optimizer state") if s["live_bytes"]]
    equal("case 27: optimizer state", facts["state"], total(state, "live_bytes"))
    holds("case 27: it is held", {s["verdict"] for s in state} == {"held"}, [s["verdict"] for s in state])
    holds("case 27: nothing grows", not growing(document), [s["id"] for s in growing(document)])


def case_30(facts, document, text):
    found = finding(document, "pool.opaque")
    holds("case 30: finding pool.opaque", found and "not visible" in found["title"], found and found["title"])
    pool = [s for s in sites(document, level="driver", device=0)
            if s["stack"] and "xla_cuda_plugin" in (s["stack"][0]["module"] or "") and s["live_bytes"] > 1 << 30]
    equal("case 30: one block, held", [(facts["pool"], "held")],
          [(s["live_bytes"], s["verdict"]) for s in pool])
    equal("case 30: no leak found", [], [f["id"] for f in document["findings"] if f["id"].startswith("leak.")])


def case_31(facts, document, text):
    pools = [p for p in document["pools"] if p["device"] == 0]
    used, reserved = total(pools, "used_bytes"), total(pools, "reserved_bytes")
    equal("case 31: used in the pool", facts["used"], used)
    holds("case 31: reserved and not used", 0 <= reserved - used - facts["idle"] <= 64 * MIB,
          f"{reserved} - {used}, {facts['idle']} freed")
    found = finding(document, "fragmentation.high")
    holds("case 31: it is told", found and "pool" in found["title"], found and found["title"])


def case_40(facts, document, text):
    holds("case 40: PyTorch sees cuBLAS's error", "CUBLAS" in facts.get("error", ""), facts.get("error"))
    hidden = [oom for oom in document["ooms"] if (oom.get("library") or "").startswith("libcublas")]
    holds("case 40: the failed driver call with its library", hidden,
          [(o["api"], o["requested_bytes"], o["verdict"], o.get("library")) for o in document["ooms"][-3:]])
    equal(f"case 40: its stack has {SCRIPT}:{facts['line']}", [True] * len(hidden),
          [anywhere(o["stack"], SCRIPT, facts["line"]) for o in hidden])
    told = [f for f in document["findings"] if f["id"] == "oom" and "CUBLAS" in advice(f)]
    holds("case 40: advice names cuBLAS's error", told, told and advice(told[0]))


def main(number, said_path, path, text_path):
    with open(text_path) as text:
        globals()[f"case_{number}"](said(said_path), load(path), text.read())


if __name__ == "__main__":
    guarded(main, *sys.argv[1:])
    end()
