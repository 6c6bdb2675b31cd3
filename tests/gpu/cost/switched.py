"""What recording PyTorch's blocks costs, told within one process, where neighbours and the layout of
memory are the same for both:

LD_PRELOAD="switch.so libgpumemtrace.so" switched.py SWITCH [SECONDS [train|inference [PROCESSORS]]]

The model is torch_cost.py's. The recording of blocks is on for a few steps and off for a few, in an order
drawn anew each time (switch.c); the first step after a change is not counted. Prints the median and the
quartiles of a turn's median step to that of its other half, and the processor's ticks that an allocation
and a free took more, which do not hold what the program lost afterwards. Begins when the tracker's ring of
events is full, as it is in all but the first seconds of a program."""
import ctypes
import os
import pathlib
import random
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
import torch_cost  # noqa: E402

STEPS = {"train": 8, "inference": 24}
FULL = 70000  # events


class Sum(ctypes.Structure):
    _fields_ = [("ticks", ctypes.c_uint64), ("events", ctypes.c_uint64)]

    def each(self):
        return self.ticks / max(self.events, 1)


def main(switch, seconds="30", name="train", processors="4"):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:int(processors)])
    library = ctypes.CDLL(switch)
    on = ctypes.c_int.in_dll(library, "switch_on")
    sums = (Sum * 2 * 2).in_dll(library, "switch_sums")
    step = torch_cost.steps()[name]

    ticks = [[], []]  # more, of an allocation and of a free

    def turn(state):
        on.value = state
        step()  # blocks come back that were handed out while the other state was
        ctypes.memset(sums, 0, ctypes.sizeof(sums))
        time_ms = torch_cost.timed(step, STEPS[name])
        return time_ms, [sums[state][kind].each() for kind in (0, 1)]

    events = 0
    while events < FULL:
        turn(1)
        events += sums[1][0].events + sums[1][1].events
    ratios, end = [], time.monotonic() + float(seconds)
    while time.monotonic() < end:
        turns = {state: turn(state) for state in random.sample((0, 1), 2)}
        ratios.append(turns[1][0] / turns[0][0])
        for kind in (0, 1):
            ticks[kind].append(turns[1][1][kind] - turns[0][1][kind])
    low, middle, high = statistics.quantiles(ratios, n=4)
    print(f"{name}, {processors} processors: {len(ratios)} turns, {middle:.3f} of plain (quartiles {low:.3f} to {high:.3f}); "
          f"ticks more, medians of turns: an allocation {statistics.median(ticks[0]):.0f}, "
          f"a free {statistics.median(ticks[1]):.0f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
