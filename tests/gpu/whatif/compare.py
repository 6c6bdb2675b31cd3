"""compare.py batch GIB PRETENDED REAL        the largest batch with GPUMEMTRACE_CAPACITY against that beside
                                           a ballast that leaves as much free
compare.py faults NAME SAID DOCUMENT       PyTorch's counts against the report's
compare.py same NAME SAID SAID             two runs that must not differ"""
import sys

from holds import GIB, end, equal, guarded, holds, load, said

PERCENT = 2


def batch(gib, pretended_path, real_path):
    pretended, real = said(pretended_path), said(real_path)
    ours, theirs = pretended["largest_batch"], real["largest_batch"]
    holds(f"{gib} GiB: largest batch", abs(ours - theirs) * 100 <= PERCENT * theirs,
          f"{ours} with GPUMEMTRACE_CAPACITY, {theirs} beside a ballast, {100 * (ours - theirs) / theirs:+.2f} %")
    equal(f"{gib} GiB: total that PyTorch sees", int(gib) * GIB, pretended["total"])
    holds(f"{gib} GiB: both met their limit", pretended["ooms"] and real["ooms"],
          f"{pretended['ooms']} and {real['ooms']} OOMs, reserved {pretended['reserved_peak']} and "
          f"{real['reserved_peak']}, free after the first step {pretended['free_after_first_step']} and "
          f"{real['free_after_first_step']}")


def faults(name, said_path, path):
    facts, document = said(said_path), load(path)
    retries = document["retries"]
    equal(f"{name}: retries, OOMs", [facts["retries"], facts["ooms"]],
          [retries["attempts"], retries["exhausted"]])
    equal(f"{name}: recovered", facts["retries"] - facts["ooms"], retries["recovered"])
    equal(f"{name}: OOMs reported", facts["ooms"], len(document["ooms"]) + retries["ooms_not_kept"])
    holds(f"{name}: PyTorch's logic ran", facts["retries"] > 0,
          f"{facts['retries']} retries, {facts['ooms']} OOMs, {facts['kept']} of 60 blocks, "
          f"{retries['flushed_bytes']} B flushed")
    if name == "fail-5":
        equal(f"{name}: one retry, no OOM", [1, 0, 60], [facts["retries"], facts["ooms"], facts["kept"]])


def same(name, one, other):
    equal(f"{name}: the same again", said(one), said(other))


if __name__ == "__main__":
    guarded({"batch": batch, "faults": faults, "same": same}[sys.argv[1]], *sys.argv[2:])
    end()
