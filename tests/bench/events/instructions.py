#!/usr/bin/env python3
"""What recording costs in instructions, by where they go. Needs valgrind; no GPU, no quiet machine.

instructions.py EVENTS SHIM LIBRARIES CLOCK [CASE...]

EVENTS is the built program `events`, LIBRARIES the folder of the simulated CUDA, CLOCK the built preload
`steady_clock`, with which the same instructions are executed in every run. For each source
folder of the shim, and for the rest (simulator, libc, unwinder), the instructions of an event; then, of an
allocation and of a free, the shim's instructions, the cache lines of data that it touches (the misses in a
first cache of 32 KiB that the program overwrites before each event) and the lines of code: what it executes
at least half of the times. VERBOSE=1 names the functions."""
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

PAIRS = 4000
STACKS_OFF = {"GPUMEMTRACE_STACKS": "off"}
DISABLED = {"GPUMEMTRACE_DISABLE": "1"}
SAMPLED = {"GPUMEMTRACE_SAMPLE": "1GiB,seed=1"}  # so few that what is counted is not sampled
ASLEEP = {"GPUMEMTRACE_START": "asleep"}
CASES = {
    "block": ("block", {}),
    "block, no stacks": ("block", STACKS_OFF),
    "block, disabled": ("block", DISABLED),
    "block, asleep": ("block", ASLEEP),
    "block, sampled": ("block", SAMPLED),
    "device": ("device", {}),
    "device, no stacks": ("device", STACKS_OFF),
    "device, disabled": ("device", DISABLED),
    "device, asleep": ("device", ASLEEP),
    "async": ("async", {}),
    "async, no stacks": ("async", STACKS_OFF),
    "async, disabled": ("async", DISABLED),
    "async, asleep": ("async", ASLEEP),
    "map": ("map", {}),
    "launch": ("launch", {}),
    "launch, disabled": ("launch", DISABLED),
    "launch, asleep": ("launch", ASLEEP),
    "CPU block": ("hook", {}),
}
HALVES = ("allocate", "release")  # functions of EVENTS
PART = re.compile(r"(?:^|/)src/(account|api|base|cupti|interpose|recorder|stack|store|track)/")
CACHES = ["--cache-sim=yes", "--I1=32768,8,64", "--D1=32768,8,64", "--LL=8388608,16,64"]
PLAIN = ["--compress-strings=no", "--compress-pos=no", "--dump-instr=yes"]
LINE = 64
LIVE, SITES, DEPTH, COLD_KIB = 512, 64, 36, 64


def costs(path):
    """Instructions and misses of data by (part, function, in the shim), and executions by (shim, address)."""
    sums, executed = collections.defaultdict(collections.Counter), collections.Counter()
    place, function, ours, skip = "other", "?", False, False
    for line in pathlib.Path(path).read_text().splitlines():
        key, _, value = line.partition("=")
        if key in ("fl", "fi", "fe"):
            found = PART.search(value)
            place = found.group(1) if found else "other"
        elif key == "ob":
            ours = "libgpumemtrace" in value
        elif key == "fn":
            function = value
        elif key == "calls":
            skip = True
        elif line.startswith("0x"):
            if not skip:
                address, _, *values = line.split()  # then Ir Dr Dw I1mr D1mr D1mw ...
                values = [*map(int, values), 0, 0, 0, 0, 0]
                sums["instructions"][place, function, ours] += values[0]
                sums["data"][place, function, ours] += values[4] + values[5]
                if ours:
                    executed[int(address, 16)] += values[0]
            skip = False
    return sums, executed


def counted(arguments, environment, options):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "out")
        subprocess.run(["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={out}",
                        "--instr-atstart=no", *PLAIN, *options,
                        *map(str, arguments)],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       env=dict(os.environ, **environment, GPUMEMTRACE_QUIET="1",
                                GPUMEMTRACE_OUT=str(pathlib.Path(folder, "out.gmt"))))
        return costs(out)


def of_a_half(program, environment, half):
    """What an allocation or a free takes: instructions and misses by (part, function, in the shim), code lines."""
    sums, executed = counted([*program, PAIRS, LIVE, SITES, DEPTH, COLD_KIB], environment,
                             [*CACHES, f"--toggle-collect={half}"])
    lines = {address // LINE for address, times in executed.items() if times > PAIRS / 2}
    instructions, data = ({key: value / PAIRS for key, value in sums[what].items()}
                          for what in ("instructions", "data"))
    return instructions, data, len(lines)


def of_the_shim(figures):
    return sum(value for (_, _, ours), value in figures.items() if ours)


def of_an_event(program, environment, half=None):
    """The shim's instructions alone, for an event of either kind or of one: much quicker to count."""
    options = [f"--toggle-collect={half}"] if half else []
    sums, _ = counted([*program, PAIRS, LIVE, SITES, DEPTH], environment, options)
    return of_the_shim(sums["instructions"]) / PAIRS / (1 if half else 2)


def preloads(settings, shim, libraries, clock):
    return dict(settings, LD_PRELOAD=f"{shim}:{clock}", LD_LIBRARY_PATH=libraries)


def by_part(figures):
    parts = collections.Counter()
    for (part, _, ours), value in figures.items():
        parts[part if ours else "other"] += value
    return parts


def main():
    events, shim, libraries, clock, *wanted = sys.argv[1:]
    for case in wanted or CASES:
        what, settings = CASES[case]
        environment = preloads(settings, shim, libraries, clock)
        for half in HALVES:
            traced, data, code = of_a_half((events, what), environment, half)
            print(f"{case}, {half}: {of_the_shim(traced):.0f} instructions ("
                  + ", ".join(f"{part} {value:.0f}" for part, value in by_part(traced).most_common())
                  + f"), {of_the_shim(data):.1f} lines of data, {code} of code", flush=True)
            for figures, name in ((traced, "instructions"), (data, "lines")) if os.environ.get("VERBOSE") else ():
                print("  " + name)
                for (part, function, _), value in sorted(figures.items(), key=lambda item: -item[1])[:40]:
                    if value >= 0.5:
                        print(f"  {value:7.1f}  {part:10} {function}")


if __name__ == "__main__":
    main()
