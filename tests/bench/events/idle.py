#!/usr/bin/env python3
"""What the shim adds to a call where it records nothing, in nanoseconds, on the simulated CUDA. No GPU is
needed, nor a quiet machine: times are the least of many short runs, in processes with and without the shim
in turn.

idle.py IDLE SHIM LIBRARIES [ROUNDS]

IDLE is the built program `idle`, LIBRARIES the folder of the simulated CUDA. Status 1 if any is 10 ns or more."""
import os
import pathlib
import subprocess
import sys
import tempfile

LIMIT_NS = 10
DISABLED = {"GPUMEMTRACE_DISABLE": "1"}
CASES = {
    "PyTorch's block, disabled": ("block", DISABLED),
    "cudaMalloc or cudaFree, disabled": ("device", DISABLED),
    "kernel's launch, disabled": ("launch", DISABLED),
    "CPU allocator's block, disabled": ("hook", DISABLED),
    "CPU allocator's block, recording": ("hook", {}),
    "known kernel's launch, recording": ("launch", {}),
}


def nanoseconds(program, what, environment):
    return float(subprocess.run([program, what], check=True, capture_output=True, text=True,
                                env=dict(os.environ, **environment)).stdout)


def main():
    idle, shim, libraries = sys.argv[1:4]
    rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 20
    most = 0
    for name, (what, settings) in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            plain = {"LD_LIBRARY_PATH": libraries}
            traced = dict(plain, LD_PRELOAD=shim, GPUMEMTRACE_QUIET="1",
                          GPUMEMTRACE_OUT=str(pathlib.Path(folder, "out.%p.gmt")), **settings)
            pairs = [(nanoseconds(idle, what, plain), nanoseconds(idle, what, traced)) for _ in range(rounds)]
        alone, with_it = (min(values) for values in zip(*pairs))
        most = max(most, with_it - alone)
        print(f"{name}: {alone:.1f} ns, with the shim {with_it - alone:+.1f}", flush=True)
    return 1 if most >= LIMIT_NS else 0


if __name__ == "__main__":
    sys.exit(main())
