"""Holds a report against what the traced program said of itself. Prints one line per figure.

compare.py KIND SAID DOCUMENT, with KIND torch, cupy, jax or static: SAID is the program's own JSON line.
"""
import json
import sys

MIB = 1 << 20


def sites(document, **wanted):
    return [s for s in document["sites"] if all(s[k] == v for k, v in wanted.items())]


def live(found):
    return sum(s["live_bytes"] for s in found)


def by_module(document, module):
    """Driver-level sites whose innermost frame lies in a library of that name."""
    return [s for s in sites(document, level="driver")
            if s["stack"] and module in (s["stack"][0]["module"] or "")]


def pairs(kind, said, document):
    total = document["totals"][0]
    usage = {u["kind"]: u for u in document["usage"]}
    if kind == "static":
        yield "live bytes", said["live"], total["current_bytes"]
        yield "peak bytes", said["peak"], total["peak_bytes"]
        yield "pinned bytes", said["pinned"], usage["pinned"]["current_bytes"]
        yield "leaked blocks", said["leaks"], usage["device"]["current_count"]
        yield "driver's free memory gone", said["driver_delta"], total["physical_bytes"]
    elif kind == "torch":
        torch = document["torch"][0]
        segments = live(by_module(document, "libc10_cuda.so"))
        yield "reserved_bytes = driver-level bytes of libc10_cuda", said["reserved"], segments
        yield "reserved_bytes", said["reserved"], torch["reserved_bytes"]
        yield "reserved_bytes peak", said["reserved_peak"], torch["reserved_peak_bytes"]
        yield "allocated_bytes", said["allocated"], torch["allocated_bytes"]
        yield "allocated_bytes peak", said["allocated_peak"], torch["allocated_peak_bytes"]
        yield "allocations", said["allocations"], torch["allocations"]
        yield "num_alloc_retries", said["retries"], torch["alloc_retries"]
        yield "num_ooms", said["ooms"], torch["ooms"]
    elif kind == "cupy":
        pool = live([s for s in sites(document, level="driver", kind="device")
                     if any("cupy" in (f["module"] or "") for f in s["stack"][:1])])
        yield "pool total_bytes = cudaMalloc by CuPy itself", said["pool_total"], pool
    elif kind == "jax":
        blocks = live([s for s in sites(document, level="driver")
                       if s["device"] is not None and any("xla_cuda_plugin" in (f["module"] or "") for f in s["stack"][:1])])
        yield "pool_bytes = device memory taken by xla_cuda_plugin", said["pool_bytes"], blocks


def main():
    kind, said, document = sys.argv[1], json.load(open(sys.argv[2])), json.load(open(sys.argv[3]))
    failed = 0
    for what, theirs, ours in pairs(kind, said, document):
        equal = theirs == ours
        failed += not equal
        print(f"{'equal ' if equal else 'DIFFER'}  {what}: {theirs:,} and {ours:,}"
              + ("" if equal else f" ({(ours - theirs) / MIB:+.2f} MiB)"))
    for row in document["ledger"]:
        print(f"        ledger of device {row['device']} ({row['source']}): process uses "
              f"{row['process_used_bytes']}, unexplained {row['unexplained_bytes']}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
