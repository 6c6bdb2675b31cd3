"""What recording costs a PyTorch program, told within one process: the shim is awake for a few steps and asleep
for a few, in an order drawn anew each time, by gpumemtrace_start and gpumemtrace_stop.

LD_PRELOAD=libgpumemtrace.so GPUMEMTRACE_START=asleep asleep.py [SECONDS [train|inference [PROCESSORS]]]

The model is torch_cost.py's. Asleep, the shim passes everything on, by some thirty instructions a block. Each
time it wakes, its ring of events is empty: it is filled by blocks that come and go, because a program's is full
in all but its first seconds, and two steps are not counted. A turn is the median step awake to that asleep next
to it. Prints the median over the turns with its 95 % interval (by the order of the turns), and what that
interval says of the goal, 1.02. Ends with 1 if the whole interval lies above it."""
import ctypes
import os
import pathlib
import random
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
import torch_cost  # noqa: E402
from interval import interval  # noqa: E402

STEPS = {"train": 8, "inference": 24}
EVENTS = 65536  # the ring's length
GOAL = 1.02


def fill_ring():
    import torch
    for _ in range(EVENTS // 2 + 1):
        torch.empty(512, device="cuda")


def verdict(low, high):
    return "met" if high <= GOAL else "missed" if low > GOAL else "not decided"


def main(seconds="20", name="train", processors="4"):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:int(processors)])
    shim = ctypes.CDLL(None)
    step = torch_cost.steps()[name]
    torch_cost.timed(step, torch_cost.WARM_UP)

    def turn(awake):
        if (shim.gpumemtrace_start if awake else shim.gpumemtrace_stop)():
            raise SystemExit("FAIL asleep: the shim cannot start or stop")
        if awake:
            fill_ring()
        step()  # blocks come back that were handed out in the other state
        return torch_cost.timed(step, STEPS[name])

    ratios, end = [], time.monotonic() + float(seconds)
    while time.monotonic() < end or len(ratios) < 6:
        times = {awake: turn(awake) for awake in random.sample((True, False), 2)}
        ratios.append(times[True] / times[False])
    low, high = interval(ratios)
    print(f"{name}, {processors} processors: {statistics.median(ratios):.3f} ({low:.3f} to {high:.3f}) of asleep, "
          f"{len(ratios)} turns; at most {GOAL}: {verdict(low, high)}", flush=True)
    os._exit(low > GOAL)  # what the shim does at the end is not the step's cost


if __name__ == "__main__":
    main(*sys.argv[1:])
