#!/usr/bin/env python3
"""What the shim adds to a call where it records nothing, in nanoseconds, on the simulated CUDA. No GPU is
needed, nor a quiet machine: a process takes the least of many short runs, and processes with and without the
shim follow each other in pairs. Printed are the median of the pairs' differences and its 95 % interval.

idle.py IDLE SHIM LIBRARIES [ROUNDS [WORD]]

IDLE is the built program `idle`, LIBRARIES the folder of the simulated CUDA; of the cases those with WORD in
their name. Status 1 if any median is above 10 ns."""
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from bench import spread

LIMIT_NS = 10
DISABLED = {"GPUMEMTRACE_DISABLE": "1"}
ASLEEP = {"GPUMEMTRACE_START": "asleep"}
CASES = {
    "PyTorch's block, asleep": ("block", ASLEEP),
    "cudaMalloc or cudaFree, asleep": ("device", ASLEEP),
    "cudaMallocAsync or cudaFreeAsync, asleep": ("async", ASLEEP),
    "kernel's launch, asleep": ("launch", ASLEEP),
    "PyTorch's block, disabled": ("block", DISABLED),
    "cudaMalloc or cudaFree, disabled": ("device", DISABLED),
    "cudaMallocAsync or cudaFreeAsync, disabled": ("async", DISABLED),
    "kernel's launch, disabled": ("launch", DISABLED),
    "CPU allocator's block, disabled": ("hook", DISABLED),
    "CPU allocator's block, recording": ("hook", {}),
    "known kernel's launch, recording": ("launch", {}),
}


def nanoseconds(program, what, environment):
    return float(subprocess.run([program, what], check=True, capture_output=True, text=True,
                                env=dict(os.environ, **environment)).stdout)


def pair(idle, what, plain, traced):
    """The nanoseconds alone and under the shim, of two processes in either order."""
    found = {key: nanoseconds(idle, what, environment)
             for key, environment in random.sample([(False, plain), (True, traced)], 2)}
    return found[False], found[True]


def main():
    idle, shim, libraries = sys.argv[1:4]
    rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 20
    most = 0
    for name, (what, settings) in CASES.items():
        if len(sys.argv) > 5 and sys.argv[5] not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            plain = {"LD_LIBRARY_PATH": libraries}
            traced = dict(plain, LD_PRELOAD=shim, GPUMEMTRACE_QUIET="1",
                          GPUMEMTRACE_OUT=str(pathlib.Path(folder, "out.%p.gmt")), **settings)
            pairs = [pair(idle, what, plain, traced) for _ in range(rounds)]
        added = [with_it - alone for alone, with_it in pairs]
        most = max(most, statistics.median(added))
        print(f"{name}: {statistics.median(alone for alone, _ in pairs):.1f} ns, with the shim {spread(added, digits=1)} more", flush=True)
    return 1 if most > LIMIT_NS else 0


if __name__ == "__main__":
    sys.exit(main())
