#!/usr/bin/env python3
"""Where nothing is recorded the shim takes a bounded number of instructions for a call: exact, and the same
on a busy machine.

idle_instructions.py EVENTS SHIM LIBRARIES

A hundred instructions of such code, without a division, a lock or a miss, are under 10 ns on the processors
of today (`idle.py` measures the time); the bounds leave room for what compilers make of it."""
import sys

import instructions

MOST = {
    "block, disabled": 30,
    "device, disabled": 90,
    "launch, disabled": 70,
    "block, asleep": 30,
    "device, asleep": 130,
    "launch, asleep": 90,
    "CPU block": 30,
    "launch": 80,
}


def main():
    events, shim, libraries = sys.argv[1:]
    failed = 0
    print(f"1..{len(MOST)}")
    for number, (case, most) in enumerate(MOST.items(), 1):
        what, settings = instructions.CASES[case]
        environment = dict(settings, LD_PRELOAD=shim, LD_LIBRARY_PATH=libraries)
        count = instructions.of_an_event((events, what), environment)
        good = 0 < count <= most
        failed += not good
        print(f"{'ok' if good else 'not ok'} {number} - {case}: {count:.0f} instructions of at most {most}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
