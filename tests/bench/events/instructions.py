#!/usr/bin/env python3
"""What recording costs in instructions, by where they go. Needs valgrind; no GPU, no quiet machine.

instructions.py EVENTS SHIM LIBRARIES [CASE...]

EVENTS is the built program `events`, LIBRARIES the folder of the simulated CUDA. Each case runs twice
under callgrind, once with more events: the difference is what the events alone took. For each source
folder of the shim, and for the rest (simulator, libc, unwinder), the instructions of an event; then the
cache lines of data that the shim touches in one, as the misses in a first cache of 32 KiB that the program
overwrites before each event. VERBOSE=1 names the functions."""
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


INSTRUCTIONS, DATA = (0,), (4, 5)  # columns of callgrind's file: Ir; D1mr and D1mw
CACHES = ["--cache-sim=yes", "--I1=32768,8,64", "--D1=32768,8,64", "--LL=8388608,16,64"]


def costs(path, columns):
    """The sum of some columns by (part, function) in a file of callgrind's."""
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
                values = line.split()[1:]
                sums[place, function] += sum(int(values[i]) for i in columns if i < len(values))
            skip = False
    return sums


def counted(arguments, environment, columns, options):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "out")
        subprocess.run(["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={out}", *options,
                        *map(str, arguments)], check=True, stdout=subprocess.DEVNULL,
                       env=dict(os.environ, **environment, GPUMEMTRACE_QUIET="1",
                                GPUMEMTRACE_OUT=str(pathlib.Path(folder, "out.gmt"))))
        return costs(out, columns)


def of_an_event(program, environment, columns):
    """What an event takes by (part, function)."""
    live, sites, depth, cold_kib = 512, 64, 36, 64 if columns == DATA else 0
    few, many = (counted([*program, count, live, sites, depth, cold_kib], environment, columns,
                         CACHES if columns == DATA else []) for count in (FEW, MANY))
    many.subtract(few)
    return {key: value / (MANY - FEW) / 2 for key, value in many.items() if value}


def by_part(figures):
    parts = collections.Counter()
    for (part, _), value in figures.items():
        parts[part] += value
    return parts


def of_the_shim(figures):
    parts = by_part(figures)
    return sum(parts.values()) - parts["other"]


def main():
    events, shim, libraries, *wanted = sys.argv[1:]
    verbose = os.environ.get("VERBOSE")
    for case in wanted or CASES:
        what, settings = CASES[case]
        environment = dict(settings, LD_PRELOAD=shim, LD_LIBRARY_PATH=libraries)
        program = (events, what)
        traced = of_an_event(program, environment, INSTRUCTIONS)
        data = of_an_event(program, environment, DATA)
        print(f"{case}: {of_the_shim(traced):.0f} instructions ("
              + ", ".join(f"{part} {value:.0f}" for part, value in by_part(traced).most_common())
              + f"), {of_the_shim(data):.1f} cache lines", flush=True)
        for figures, name in ((traced, "instructions"), (data, "cache lines")) if verbose else ():
            print("  " + name)
            for (part, function), value in sorted(figures.items(), key=lambda item: -item[1])[:40]:
                if value >= 0.5:
                    print(f"  {value:7.1f}  {part:10} {function}")


if __name__ == "__main__":
    main()
