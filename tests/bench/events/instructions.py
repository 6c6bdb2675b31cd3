#!/usr/bin/env python3
"""What recording costs in instructions, by where they go. Needs valgrind; no GPU, no quiet machine.

instructions.py EVENTS SHIM LIBRARIES CLOCK [CASE...]

EVENTS is the built program `events`, LIBRARIES the folder of the simulated CUDA, CLOCK the built preload
`steady_clock`, with which the same instructions are executed in every run. For each source
folder of the shim, and for the rest (simulator, libc, unwinder), the instructions of an event; then, of an
allocation and of a free, the shim's instructions, the cache lines and the pages of data that it touches (the
misses in a first cache of 32 KiB and in a last one of 64 pages, both of which the program overwrites before each
event), and the lines and pages of the code that it executes at least half of the times. VERBOSE=1 names the
functions."""
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
    "block, one in seven sampled": ("block", {"GPUMEMTRACE_SAMPLE": "6MiB,seed=1"}),
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
SHAPES = {"block, one in seven sampled": (500, 256)}  # live blocks and sizes; of the other cases:
SHAPE = (512, 4096)
HALVES = ("allocate", "release")  # functions of EVENTS
PART = re.compile(r"(?:^|/)src/(account|api|base|cupti|interpose|recorder|stack|store|track)/")
LINE, PAGE = 64, 4096
# The last cache takes the place of the processor's buffer of address translations.
CACHES = ["--cache-sim=yes", f"--I1=32768,8,{LINE}", f"--D1=32768,8,{LINE}", f"--LL={64 * PAGE},64,{PAGE}"]
PLAIN = ["--compress-strings=no", "--compress-pos=no", "--dump-instr=yes"]
SITES, DEPTH, COLD_KIB = 64, 36, 2 * 64 * PAGE // 1024
Half = collections.namedtuple("Half", "instructions data_lines data_pages code_lines code_pages")


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
                address, _, *values = line.split()  # then Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw
                values = [*map(int, values), *[0] * 8]
                sums["instructions"][place, function, ours] += values[0]
                sums["lines"][place, function, ours] += values[4] + values[5]
                sums["pages"][place, function, ours] += values[7] + values[8]
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


def of_a_half(program, environment, half, shape=SHAPE):
    """What an allocation or a free takes: instructions and misses by (part, function, in the shim), and its code."""
    live, sizes = shape
    sums, executed = counted([*program, PAIRS, live, SITES, DEPTH, COLD_KIB, sizes], environment,
                             [*CACHES, f"--toggle-collect={half}"])
    code = [address for address, times in executed.items() if times > PAIRS / 2]
    return Half(*({key: value / PAIRS for key, value in sums[what].items()} for what in ("instructions", "lines", "pages")),
                *(len({address // unit for address in code}) for unit in (LINE, PAGE)))


def of_the_shim(figures):
    return sum(value for (_, _, ours), value in figures.items() if ours)


def of_an_event(program, environment, half=None, shape=SHAPE):
    """The shim's instructions alone, for an event of either kind or of one: much quicker to count."""
    options = [f"--toggle-collect={half}"] if half else []
    live, sizes = shape
    sums, _ = counted([*program, PAIRS, live, SITES, DEPTH, 0, sizes], environment, options)
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
            found = of_a_half((events, what), environment, half, SHAPES.get(case, SHAPE))
            print(f"{case}, {half}: {of_the_shim(found.instructions):.0f} instructions ("
                  + ", ".join(f"{part} {value:.0f}" for part, value in by_part(found.instructions).most_common())
                  + f"), {of_the_shim(found.data_lines):.1f} lines of data on {of_the_shim(found.data_pages):.1f} pages, "
                  f"{found.code_lines} of code on {found.code_pages}", flush=True)
            for name in ("instructions", "data_lines", "data_pages") if os.environ.get("VERBOSE") else ():
                figures = getattr(found, name)
                print("  " + name.replace("_", " "))
                for (part, function, _), value in sorted(figures.items(), key=lambda item: -item[1])[:40]:
                    if value >= 0.5:
                        print(f"  {value:7.1f}  {part:10} {function}")


if __name__ == "__main__":
    main()
