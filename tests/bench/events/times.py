#!/usr/bin/env python3
"""What recording adds to an event in nanoseconds, on the simulated CUDA and PyTorch: no GPU is needed,
but a quiet machine.

times.py EVENTS SHIM LIBRARIES [ROUNDS]

The variants run in turn, ROUNDS times each; the median of the differences to the plain run of the same
round, and the least and the most. Warm: events follow each other at once. Cold: before each event the
program writes 4 MiB, as much as a framework may between two of its allocations."""
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

VARIANTS = {
    "recording": {},
    "without stacks": {"GPUMEMTRACE_STACKS": "off"},
    "disabled": {"GPUMEMTRACE_DISABLE": "1"},
}
#         what, events, cold KiB
CASES = {
    "PyTorch's block, warm": ("block", 400000, 0),
    "PyTorch's block, cold": ("block", 4000, 4096),
    "cudaMalloc or cudaFree, warm": ("device", 100000, 0),
    "cudaMallocAsync or cudaFreeAsync, warm": ("async", 100000, 0),
    "known kernel's launch, warm": ("launch", 1000000, 0),
    "CPU allocator's block, warm": ("hook", 1000000, 0),
}
LIVE, SITES, DEPTH = 512, 300, 36


def nanoseconds(program, case, environment):
    what, count, cold = case
    done = subprocess.run([program, what, str(count), str(LIVE), str(SITES), str(DEPTH), str(cold)],
                          check=True, capture_output=True, text=True,
                          env=dict(os.environ, **environment))
    return float(done.stdout)


def main():
    events, shim, libraries = sys.argv[1:4]
    rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 5
    plain = {"LD_LIBRARY_PATH": libraries}
    for name, case in CASES.items():
        added = {variant: [] for variant in VARIANTS}
        alone = []
        with tempfile.TemporaryDirectory() as folder:
            traced = dict(plain, LD_PRELOAD=shim, GPUMEMTRACE_QUIET="1",
                          GPUMEMTRACE_OUT=str(pathlib.Path(folder, "out.%p.gmt")))
            for _ in range(rounds):
                alone.append(nanoseconds(events, case, plain))
                for variant, settings in VARIANTS.items():
                    value = nanoseconds(events, case, dict(traced, **settings))
                    added[variant].append(value - alone[-1])
        print(f"{name}: plain {statistics.median(alone):.1f} ns")
        for variant, values in added.items():
            print(f"  {variant:15} {statistics.median(values):+8.1f} "
                  f"({min(values):+.1f} to {max(values):+.1f})", flush=True)


if __name__ == "__main__":
    main()
