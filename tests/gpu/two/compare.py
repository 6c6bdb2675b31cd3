"""What the ranks' files say against what the ranks said:
compare.py ranks FOLDER JOB leak|stray|clean    NAME.json of each rank in FOLDER, JOB the whole job's document
compare.py nccl FOLDER                          the all-reduce's
compare.py share SAID DOCUMENT..."""
import os
import sys

from holds import MIB, anywhere, end, equal, finding, guarded, holds, load, said, sites, total, within

SCRIPT = "ddp_loop.py"


def owned_by(document, library):
    """Its own: what it opened of another rank's is that one's."""
    return sum(s["live_bytes"] for s in sites(document, level="driver")
               if s["device"] is not None and s["kind"] != "imported" and (s["library"] or "").startswith(library))


def one_rank(folder, rank, mode):
    facts, document = said(f"{folder}/said.{rank}"), load(f"{folder}/rank{rank}.json")
    name = f"{os.path.basename(folder)}, rank {rank}"
    torch = next(row for row in document["torch"] if row["device"] == rank)
    equal(f"{name}: allocated, its peak, reserved",
          [facts["allocated"], facts["allocated_peak"], facts["reserved"]],
          [torch["allocated_bytes"], torch["allocated_peak_bytes"], torch["reserved_bytes"]])
    equal(f"{name}: rank and world size", [rank, 2],
          [document["process"]["rank"], document["process"]["world_size"]])
    nccl = owned_by(document, "libnccl")
    holds(f"{name}: NCCL's memory", nccl > 50 * MIB, f"{nccl} B; " + ", ".join(
        f"{r['what']} {r['library'] or ''} {r['bytes']}" for entry in document["ledger"] for r in entry["rows"]
        if "nccl" in f"{r['library']}{r['what']}".lower()))
    growing = [s for s in document["sites"] if s["verdict"] == "grow"]
    there = [s for s in growing if anywhere(s["stack"], SCRIPT, facts["append_line"])]
    if mode == "leak" and rank == 1:
        holds(f"{name}: grows at {SCRIPT}:{facts['append_line']}", there,
              f"{total(there, 'live_bytes')} B at {len(there)} of {len(growing)} growing sites")
    else:
        holds(f"{name}: nothing grows", not growing, [s["id"] for s in growing])
    stray = finding(document, "context.stray")
    if mode == "stray" and rank == 1:
        said_where = f"{stray['title']} {stray['evidence']}" if stray else ""
        holds(f"{name}: stray context named with {SCRIPT}:{facts['stray_line']}",
              f"{SCRIPT}:{facts['stray_line']}" in said_where, said_where or "no context.stray")
    else:
        holds(f"{name}: no stray context", not stray, stray and stray["evidence"])


def ranks(folder, job_path, mode):
    for rank in (0, 1):
        guarded(one_rank, folder, rank, mode)
    document = load(job_path)
    name = f"{os.path.basename(folder)}, the job"
    equal(f"{name}: documents of ranks", [0, 1], sorted(run["process"]["rank"] for run in document["runs"]
                                                         if run["process"]["rank"] is not None))
    ids = sorted({f["id"] for f in document["job"]["findings"]})
    wanted = {"leak": "leak.grow", "stray": "context.stray"}.get(mode)
    holds(f"{name}: findings", not wanted or wanted in ids, ids)


def nccl(folder):
    for rank in (0, 1):
        facts = said(f"{folder}/said.{rank}")
        nccl_bytes = {moment: owned_by(load(f"{folder}/{moment}.{rank}.json"), "libnccl")
                      for moment in ("one", "two", "after")}
        name = f"all-reduce, rank {rank}"
        holds(f"{name}: the sums", facts["right"], facts["right"])
        within(f"{name}: the second communicator, the driver's figure against NCCL's memory", facts["second"],
               nccl_bytes["two"] - nccl_bytes["one"], 8 * MIB)
        equal(f"{name}: NCCL's memory after the end of the groups", 0, nccl_bytes["after"])
        print(f"      NCCL: {nccl_bytes}; the driver got {facts['given_back']} B back")


def share(said_path, *paths):
    facts, documents = said(said_path), [load(path) for path in paths]
    equal("share: files of two processes", 2, len(documents))
    child = next(d for d in documents if d["process"]["pid"] == facts["child"])
    parent = next(d for d in documents if d["process"]["pid"] != facts["child"])
    imported = total([u for u in child["usage"] if u["kind"] == "imported"], "peak_bytes")
    holds("share: imported by the child", imported >= facts["bytes"], f"{imported} B")
    own = total([u for u in child["usage"] if u["kind"] == "device"], "peak_bytes")
    holds("share: not counted as the child's own", own < facts["bytes"], f"{own} B")
    theirs = total([u for u in parent["usage"] if u["kind"] == "device"], "peak_bytes")
    holds("share: the parent's own", theirs >= facts["bytes"], f"{theirs} B")
    for document in documents:
        holds(f"share: no error in {document['process']['pid']}", not [
            e for e in document["errors"] if e["type"] != "freed-while-exported"],
            [e["type"] for e in document["errors"]])


if __name__ == "__main__":
    guarded({"ranks": ranks, "nccl": nccl, "share": share}[sys.argv[1]], *sys.argv[2:])
    end()
