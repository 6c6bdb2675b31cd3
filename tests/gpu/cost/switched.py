"""What recording PyTorch's blocks costs, told within one process, where neighbours and the layout of
memory are the same for both:

LD_PRELOAD="switch.so libgpumemtrace.so" switched.py SWITCH [SECONDS [train|inference [PROCESSORS]]]

The model is torch_cost.py's. The recording of blocks is on for a few steps and off for a few, in an order
drawn anew each time (switch.c); the first step after a change is not counted. Prints the median of a turn's
median step to that of its other half with its 95 % interval, the processor's ticks that an allocation and a free
took more, which do not hold what the program lost afterwards, and what share of a step these ticks are. Begins when the tracker's ring of
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
from interval import interval  # noqa: E402

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

    library.switch_ticks.restype = ctypes.c_uint64

    def turn(state):
        """Milliseconds of a step; ticks of an allocation and of a free; how many of them; ticks of a step."""
        on.value = state
        step()  # blocks come back that were handed out while the other state was
        ctypes.memset(sums, 0, ctypes.sizeof(sums))
        begun = library.switch_ticks()
        time_ms = torch_cost.timed(step, STEPS[name])
        ticks = library.switch_ticks() - begun
        return time_ms, [sums[state][kind].each() for kind in (0, 1)], [sums[state][kind].events for kind in (0, 1)], ticks

    events = 0
    while events < FULL:
        turn(1)
        events += sums[1][0].events + sums[1][1].events
    ratios, more, shares, end = [], [[], []], [], time.monotonic() + float(seconds)
    while time.monotonic() < end:
        turns = {state: turn(state) for state in random.sample((0, 1), 2)}
        ratios.append(turns[1][0] / turns[0][0])
        extra = [turns[1][1][kind] - turns[0][1][kind] for kind in (0, 1)]
        for kind in (0, 1):
            more[kind].append(extra[kind])
        shares.append(sum(extra[kind] * turns[1][2][kind] for kind in (0, 1)) / turns[0][3])
    low, high = interval(ratios)
    low_share, high_share = interval(shares)
    print(f"{name}, {processors} processors: {len(ratios)} turns, {statistics.median(ratios):.4f} of plain (95 %: {low:.4f} to {high:.4f}); "
          f"ticks more, medians of turns: an allocation {statistics.median(more[0]):.0f}, a free {statistics.median(more[1]):.0f}, "
          f"which is {100 * statistics.median(shares):.2f} % of a step (95 %: {100 * low_share:.2f} to {100 * high_share:.2f})")


if __name__ == "__main__":
    main(*sys.argv[1:])
