#!/usr/bin/env python3
"""The shim takes a bounded number of instructions, and of cache lines, for a call: exact, and the same on a
busy machine.

most_instructions.py EVENTS SHIM LIBRARIES CLOCK

Where nothing is recorded: a hundred instructions of such code, without a division, a lock or a miss, are under
10 ns on the processors of today (`idle.py` measures the time). Where something is: what an allocation and its
free take with 36 frames, in a build with -O2; of virtual memory two calls each. The bounds leave room for what
compilers make of it. A program displaces the shim from the processor's caches between two of its blocks, so for
these the lines of data and of code are bounded too."""
import collections
import sys

import instructions

Lines = collections.namedtuple("Lines", "instructions data code")
MOST = {
    "block, disabled": 18,
    "device, disabled": 90,
    "launch, disabled": 70,
    "block, asleep": 18,
    "device, asleep": 130,
    "launch, asleep": 90,
    "CPU block": 18,
    "launch": 65,
    "block": (Lines(1035, 50, 66), Lines(485, 32, 46)),
    "block, sampled": (Lines(115, 6, 10), Lines(125, 8, 11)),
    "block, one in seven sampled": (420, 260),
    "device": (1290, 990),
    "async": (1320, 990),
    "map": (3400, 2610),
}


def counts(case, events, environment, most):
    """The bounds of a case and its counts: of an event of either kind, or of each half."""
    program, shape = (events, instructions.CASES[case][0]), instructions.SHAPES.get(case, instructions.SHAPE)
    if isinstance(most, int):
        yield "", "instructions", most, instructions.of_an_event(program, environment)
        return
    for half, bound in zip(instructions.HALVES, most):
        if isinstance(bound, int):
            yield f", {half}", "instructions", bound, instructions.of_an_event(program, environment, half, shape)
            continue
        found = instructions.of_a_half(program, environment, half, shape)
        yield f", {half}", "instructions", bound.instructions, instructions.of_the_shim(found.instructions)
        yield f", {half}", "lines of data", bound.data, instructions.of_the_shim(found.data_lines)
        yield f", {half}", "lines of code", bound.code, found.code_lines


def main():
    events, shim, libraries, clock = sys.argv[1:]
    number = failed = 0
    for case, most in MOST.items():
        environment = instructions.preloads(instructions.CASES[case][1], shim, libraries, clock)
        for half, unit, bound, count in counts(case, events, environment, most):
            number += 1
            good = 0 < count <= bound
            failed += not good
            print(f"{'ok' if good else 'not ok'} {number} - {case}{half}: {count:.0f} {unit} of at most {bound}",
                  flush=True)
    print(f"1..{number}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
