#!/usr/bin/env python3
"""The shim takes a bounded number of instructions for a call: exact, and the same on a busy machine.

most_instructions.py EVENTS SHIM LIBRARIES CLOCK

Where nothing is recorded: a hundred instructions of such code, without a division, a lock or a miss, are under
10 ns on the processors of today (`idle.py` measures the time). Where something is: what an allocation and its
free take with 36 frames, in a build with -O2; of virtual memory two calls each. The bounds leave room for what
compilers make of it."""
import sys

import instructions

MOST = {
    "block, disabled": 18,
    "device, disabled": 90,
    "launch, disabled": 70,
    "block, asleep": 18,
    "device, asleep": 130,
    "launch, asleep": 90,
    "CPU block": 18,
    "launch": 65,
    "block": (1035, 485),
    "block, sampled": (115, 125),
    "device": (1285, 990),
    "async": (1315, 980),
    "map": (3400, 2610),
}


def counts(program, environment, most):
    """The bounds of a case and its counts: of an event of either kind, or of each half."""
    if isinstance(most, int):
        return [("", most, instructions.of_an_event(program, environment))]
    return [(f", {half}", bound, instructions.of_an_event(program, environment, half))
            for half, bound in zip(instructions.HALVES, most)]


def main():
    events, shim, libraries, clock = sys.argv[1:]
    number = failed = 0
    for case, most in MOST.items():
        what, settings = instructions.CASES[case]
        environment = instructions.preloads(settings, shim, libraries, clock)
        for half, bound, count in counts((events, what), environment, most):
            number += 1
            good = 0 < count <= bound
            failed += not good
            print(f"{'ok' if good else 'not ok'} {number} - {case}{half}: {count:.0f} instructions of at most {bound}",
                  flush=True)
    print(f"1..{number}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
