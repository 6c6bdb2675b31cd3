#!/usr/bin/env python3
"""What recording costs in instructions, by where they go. Needs valgrind; no GPU, no quiet machine.

instructions.py EVENTS SHIM LIBRARIES [CASE...]

EVENTS is the built program `events`, LIBRARIES the folder of the simulated CUDA. Each case runs twice
under callgrind, once with more events: the difference is what the events alone took. For each source
folder of the shim, and for the rest (simulator, libc, unwinder), the instructions of an event."""
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

FEW, MANY = 2000, 6000
STACKS_OFF = {"GPUMEMTRACE_STACKS": "off"}
DISABLED = {"GPUMEMTRACE_DISABLE": "1"}
CASES = {
    "block": ("block", {}),
    "block, no stacks": ("block", STACKS_OFF),
    "block, disabled": ("block", DISABLED),
    "device": ("device", {}),
    "device, no stacks": ("device", STACKS_OFF),
    "device, disabled": ("device", DISABLED),
    "async": ("async", {}),
    "async, no stacks": ("async", STACKS_OFF),
    "async, disabled": ("async", DISABLED),
    "launch": ("launch", {}),
    "launch, disabled": ("launch", DISABLED),
    "CPU block": ("hook", {}),
}
PART = re.compile(r"(?:^|/)src/(api|interpose|stack|store|track|cupti)/")


def costs(path):
    """Instructions by (part, function) in a file of callgrind's."""
    names, sums = {}, collections.Counter()
    place, function, skip = "?", "?", False

    def named(kind, text):
        number, name = re.match(r"\((\d+)\)(?: (.*))?$", text).groups()
        if name is not None:
            names[kind, number] = name
        return names[kind, number]

    for line in pathlib.Path(path).read_text().splitlines():
        key, _, value = line.partition("=")
        if key in ("fl", "fi", "fe"):
            found = PART.search(named("file", value))
            place = found.group(1) if found else "other"
        elif key == "ob":
            named("object", value)
        elif key == "fn":
            function = named("function", value)
        elif key in ("cfl", "cfi"):
            named("file", value)
        elif key == "cob":
            named("object", value)
        elif key == "cfn":
            named("function", value)
        elif key == "calls":
            skip = True
        elif re.match(r"[-+*0-9]", line):
            if not skip:
                sums[place, function] += int(line.split()[1])
            skip = False
    return sums


def counted(program, count, environment):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "out")
        subprocess.run(["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={out}", program[0],
                        program[1], str(count)], check=True, stdout=subprocess.DEVNULL,
                       env=dict(os.environ, **environment, GPUMEMTRACE_QUIET="1",
                                GPUMEMTRACE_OUT=str(pathlib.Path(folder, "out.gmt"))))
        return costs(out)


def of_an_event(program, environment):
    few, many = (counted(program, count, environment) for count in (FEW, MANY))
    many.subtract(few)
    return {key: value / (MANY - FEW) / 2 for key, value in many.items() if value}


def main():
    events, shim, libraries, *wanted = sys.argv[1:]
    verbose = os.environ.get("VERBOSE")
    for case in wanted or CASES:
        what, settings = CASES[case]
        environment = dict(settings, LD_PRELOAD=shim, LD_LIBRARY_PATH=libraries)
        traced = of_an_event((events, what), environment)
        parts = collections.Counter()
        for (part, _), value in traced.items():
            parts[part] += value
        print(f"{case}: " + ", ".join(f"{part} {value:.0f}" for part, value in parts.most_common())
              + f"; shim {sum(parts.values()) - parts['other']:.0f}", flush=True)
        if verbose:
            for (part, function), value in sorted(traced.items(), key=lambda item: -item[1])[:40]:
                if value >= 1:
                    print(f"  {value:7.1f}  {part:10} {function}")


if __name__ == "__main__":
    main()
