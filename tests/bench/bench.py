#!/usr/bin/env python3
"""What recording and reporting cost, as ratios of things that ran in turn.

bench.py --build BUILD [--rounds N] [--against BUILD] [--write FILE] [TARGET...]

Each target prints a table; --write puts them between the marks of a Markdown file. Targets: pair,
disabled, scale, threads, history, report, directory, start. A round runs each variant once, in an order
drawn anew; from six rounds on a median has its 95 % interval (by the order of the rounds), before that the
least and the most. --against adds the shim of another build to `pair`, and what this one costs more. Nothing
is asserted: machines are noisy.
"""
import argparse
import datetime
import json
import math
import os
import pathlib
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

BEGIN, END = "<!-- figures: written by ./bench -->", "<!-- end of figures -->"


class Bench:
    """Where things are, and how a program is run with and without us."""

    def __init__(self, build, rounds, folder, against=None):
        self.rounds, self.folder, self.against = rounds, pathlib.Path(folder), against
        self.shim = build / "src/interpose/libgpumemtrace.so"
        self.report = build / "tools/gpumem-report/gpumem-report"
        self.load = build / "tests/bench/load/load"
        self.threads = build / "tests/bench/load/threads"
        self.plain = {**os.environ, "LD_LIBRARY_PATH": str(build / "tests/sim")}
        self.plain.pop("LD_PRELOAD", None)
        self.plain["GPUSIM_MEMORY"] = "1TiB"  # a million allocations take a page of 2 MiB each at most
        self.statfs = build / "tests/shim/guest/hook_statfs.so"

    def traced(self, out="bench.gmt", **settings):
        path = self.folder / out
        for old in self.folder.glob(out + "*"):
            old.unlink()
        return {**self.plain, "LD_PRELOAD": str(self.shim), "GPUMEMTRACE_OUT": str(path),
                "GPUMEMTRACE_QUIET": "1", **settings}

    def run_load(self, environment, *options, before=(), program=None):
        done = subprocess.run([*before, str(program or self.load), *map(str, options)], env=environment,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        if done.returncode or not lines:
            sys.exit("bench: %s ended with %d: %s" % (" ".join(map(str, options)), done.returncode,
                                                     done.stderr[-300:]))
        return json.loads(lines[-1])

    def in_turn(self, variants):
        """Runs each of the variants in every round; a list of results for each name."""
        results = {name: [] for name in variants}
        for _ in range(self.rounds):
            for name in random.sample(list(variants), len(variants)):
                results[name].append(variants[name]())
        return results


def figures(results, name, figure):
    return [result[figure] for result in results[name]]


def added(results, name, base, figure):
    return [a[figure] - b[figure] for a, b in zip(results[name], results[base])]


def interval(values):
    """The median, and between which values that of all rounds lies with 95 % (by the order of the values); of fewer
    than six values, the least and the most."""
    values, count = sorted(values), len(values)
    below = [sum(math.comb(count, j) for j in range(i + 1)) / 2 ** count for i in range(count)]
    outside = sum(1 for part in below if part <= 0.025)  # on either side
    return statistics.median(values), values[max(outside - 1, 0)], values[min(count - outside, count - 1)]


def spread(values, unit="", digits=0):
    median, low, high = interval(values)
    return "%.*f%s (%.*f to %.*f)" % (digits, median, unit, digits, low, digits, high)


class Table:
    def __init__(self, title, *head):
        self.title, self.rows = title, [head]

    def add(self, *cells):
        self.rows.append([str(cell) for cell in cells])

    def markdown(self):
        lines = ["| " + " | ".join(row) + " |" for row in self.rows]
        lines.insert(1, "|" + " --- |" * len(self.rows[0]))
        return "### %s\n\n%s\n" % (self.title, "\n".join(lines))


def pair(bench):
    """Target 1: added time per allocate+free pair, 36 frames, against heaptrack."""
    heaptrack = shutil.which("heaptrack")
    shape = ("--depth", 36, "--inner", 8, "--sites", 64, "--pairs", 200000)
    recorded = bench.folder / "heaptrack"
    variants = {
        "malloc": lambda: bench.run_load(bench.plain, "--api", "malloc", *shape),
        "simulated": lambda: bench.run_load(bench.plain, *shape),
        "ours": lambda: bench.run_load(bench.traced(), *shape),
        "no stack cache": lambda: bench.run_load(bench.traced(GPUMEMTRACE_STACK_CACHE="off"), *shape),
        "no stacks": lambda: bench.run_load(bench.traced(GPUMEMTRACE_STACKS="off"), *shape),
    }
    if heaptrack:
        variants["heaptrack"] = lambda: bench.run_load(
            bench.plain, "--api", "malloc", *shape,
            before=(heaptrack, "--raw", "-o", str(recorded)))
    if bench.against:
        other = str(bench.against / "src/interpose/libgpumemtrace.so")
        variants["the other build"] = lambda: bench.run_load(bench.traced(LD_PRELOAD=other), *shape)
    results = bench.in_turn(variants)
    base = {"heaptrack": "malloc"}
    table = Table("A pair of allocate and free, 36 frames, 64 sites, one thread",
                  "", "added to a pair, ns", "of heaptrack's")
    reference = added(results, "heaptrack", "malloc", "pair_ns") if heaptrack else None
    for name in variants:
        if name in ("malloc", "simulated"):
            continue
        extra = added(results, name, base.get(name, "simulated"), "pair_ns")
        ratio = spread([a / b for a, b in zip(extra, reference)], digits=2) if reference else "?"
        table.add(name, spread(extra), ratio)
    if bench.against:
        table.add("ours less the other build", spread(added(results, "ours", "the other build", "pair_ns"), digits=1))
    return table


def disabled(bench):
    """Calls that are not recorded."""
    shape = ("--pairs", 2000000, "--depth", 2, "--inner", 1, "--sites", 1)
    results = bench.in_turn({
        "plain": lambda: bench.run_load(bench.plain, *shape),
        "GPUMEMTRACE_DISABLE=1": lambda: bench.run_load(bench.traced(GPUMEMTRACE_DISABLE="1"), *shape),
    })
    table = Table("Switched off", "", "added to a call, ns")
    table.add("GPUMEMTRACE_DISABLE=1", spread(
        [value / 2 for value in added(results, "GPUMEMTRACE_DISABLE=1", "plain", "pair_ns")], digits=1))
    return table


def scale(bench):
    """Target 4: what grows with live allocations, and what must not grow with events."""
    table = Table("Scale", "", "figure")
    few, many = 1000, 1000000
    shape = {live: ("--live", live, "--pairs", 1) for live in (few, many)}
    results = bench.in_turn({
        (name, live): lambda name=name, live=live: bench.run_load(
            bench.plain if name == "plain" else bench.traced("%d.gmt" % live), *shape[live])
        for live in (few, many) for name in ("plain", "ours")})
    extra = {live: added(results, ("ours", live), ("plain", live), "insert_ns") for live in (few, many)}
    for live in (few, many):
        table.add("added to an allocation among %d live ones, ns" % live, spread(extra[live]))
    table.add("the latter of the former", spread(
        [b / a for a, b in zip(extra[few], extra[many])], digits=2))
    blocks = {live: (bench.folder / ("%d.gmt" % live)).stat().st_blocks * 512 for live in (few, many)}
    table.add("file bytes for each of %d live allocations" % many,
              "%.0f" % ((blocks[many] - blocks[few]) / (many - few)))
    for pairs in (500000, 50000000):
        result = bench.run_load(bench.traced(), "--pairs", pairs, "--sites", 64)
        table.add("%.0e events: file and resident size" % (2 * pairs), "%d KiB, %d KiB" % (
            (bench.folder / "bench.gmt").stat().st_blocks / 2, result["rss_kib"]))
    return table


THREADS = (1, 2, 4, 16, 64)
PAIRED = 11  # runs with and without the shim, in turn


def thread_costs(bench, api, work):
    """What the shim adds to a call, in ns of CPU time and of wall-clock time, by the number of threads."""
    cpu, wall = ({count: [] for count in THREADS} for _ in range(2))
    for _ in range(PAIRED):
        for count in THREADS:
            shape = ("--api", api, "--threads", count, "--warm", max(50000 // count, 2000), "--pairs",
                     max(200000 // count, 20000), "--sites", 16, "--work", work)
            plain = bench.run_load(bench.plain, *shape, program=bench.threads)
            ours = bench.run_load(bench.traced(), *shape, program=bench.threads)
            cpu[count].append((ours["pair_cpu_ns"] - plain["pair_cpu_ns"]) / 2)
            wall[count].append((ours["pair_ns"] - plain["pair_ns"]) / 2)
    return cpu, wall


def threads(bench):
    """Target 4: threads that record at once, of a CUDA whose threads share nothing."""
    table = Table("Threads that record at once, medians of %d pairs of runs with their 95 %% intervals" % PAIRED,
                  "calls", "threads", "added, ns a call of CPU time", "of one thread's",
                  "added, ns a call of wall-clock time")
    for api, name in (("device", "cudaMalloc, cudaFree"), ("async", "cudaMallocAsync, cudaFreeAsync"),
                      ("block", "PyTorch's blocks")):
        for work, between in ((0, "nothing else"), (4000, "1 us of other work between two")):
            cpu, wall = thread_costs(bench, api, work)
            for count in THREADS:
                ratios = [value / one for value, one in zip(cpu[count], cpu[1])]
                table.add("%s, %s" % (name, between), count, spread(cpu[count]),
                          spread(ratios, digits=2),
                          spread(wall[count]) if count <= os.cpu_count() else "")
    return table


def timed(command, environment=None):
    """Seconds and peak MiB of a command whose output goes nowhere."""
    begin = time.perf_counter()
    child = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = status
    return {"s": time.perf_counter() - begin, "mib": usage.ru_maxrss / 1024, "status": status}


def report(bench):
    """Target 5: a file with a million live allocations from a hundred thousand sites."""
    bench.run_load(bench.traced("big.gmt", GPUMEMTRACE_MAX_FILE="2GiB"), "--live", 1000000, "--sites",
                   100000, "--pairs", 1, "--depth", 20, "--inner", 8)
    big = str(bench.folder / "big.gmt")
    file_mib = os.stat(big).st_size / 2**20
    table = Table("The report on 10^6 live allocations from 10^5 sites, a file of %.0f MiB" % file_mib, "command", "seconds",
                  "MiB", "of the file's size", "target")
    results = bench.in_turn({
        name: lambda arguments=arguments: timed([str(bench.report), *arguments])
        for name, arguments in {
            "summary": ["summary", big], "summary --json": ["summary", "--json", big],
            "html": ["html", "-o", str(bench.folder / "big.html"), big]}.items()})
    for name, target in (("summary", "1 s"), ("summary --json", "1.5 s"), ("html", "3 s")):
        failed = [r["status"] for r in results[name] if r["status"]]
        most = max(figures(results, name, "mib"))
        table.add(name + (" (failed)" if failed else ""), spread(figures(results, name, "s"), digits=2),
                  "%.0f" % most, "%.2f" % (most / file_mib), target + ", the file's size")
    return table


def history(bench):
    """Target 5: writing and reading a complete history."""
    shape = ("--sites", 64, "--pairs")
    written = bench.in_turn({
        "ring": lambda: bench.run_load(bench.traced(), *shape, 1000000),
        "all": lambda: bench.run_load(bench.traced(GPUMEMTRACE_EVENTS="all"), *shape, 1000000)})
    pairs = 5000000
    bench.run_load(bench.traced("all.gmt", GPUMEMTRACE_EVENTS="all", GPUMEMTRACE_MAX_FILE="8GiB"), *shape, pairs)
    path = bench.folder / "all.gmt"
    end = json.loads(subprocess.run([str(bench.report), "summary", "--json", "--no-symbols", str(path)], check=True,
                                    stdout=subprocess.PIPE).stdout)["process"]["duration_s"]
    results = bench.in_turn({
        "timeline": lambda: timed([str(bench.report), "timeline", str(path)]),
        **{f"at {part}": lambda part=part: timed([str(bench.report), "summary", "--at", repr(end * part), str(path)])
           for part in (0.5, 0.999)}})
    table = Table("A complete history of 10^7 events", "", "figure")
    table.add("added to an event by GPUMEMTRACE_EVENTS=all, ns of CPU time", spread(
        [(a["pair_cpu_ns"] - b["pair_cpu_ns"]) / 2 for a, b in zip(written["all"], written["ring"])]))
    table.add("bytes of an event", "%.1f" % (os.stat(str(path) + ".events").st_size / (2 * pairs)))
    table.add("timeline, million events a second", spread(
        [2 * pairs / 1e6 / result["s"] for result in results["timeline"]], digits=1))
    table.add("summary --at the middle, s", spread(figures(results, "at 0.5", "s"), digits=2))
    table.add("summary --at the end, s", spread(figures(results, "at 0.999", "s"), digits=2))
    return table


def directory(bench):
    """Target 6: the pointer scheme. A double of statfs says that the directory is on NFS."""
    shape = ("--pairs", 200000, "--sites", 64)

    def network():
        environment = bench.traced("network.gmt", NETWORK_DIRECTORY=str(bench.folder))
        environment["LD_PRELOAD"] += ":" + str(bench.statfs)
        return bench.run_load(environment, *shape)
    results = bench.in_turn({"local": lambda: bench.run_load(bench.traced(), *shape),
                             "network": network})
    table = Table("An output directory on a network filesystem", "", "of a local one's time")
    table.add("pair", spread([a["pair_ns"] / b["pair_ns"] for a, b in
                              zip(results["network"], results["local"])], digits=3))
    return table


def taken(command, environment):
    """What a command takes of a processor, in seconds (waiting, for it or for the disk, is not the shim's), and its
    page faults."""
    child = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = status
    if status:
        sys.exit("bench: %s ended with status %d" % (" ".join(command), status))
    return usage.ru_utime + usage.ru_stime, usage.ru_minflt + usage.ru_majflt


def instructions(command, environment):
    """Instructions of a command by callgrind, which no neighbour disturbs; None without valgrind."""
    if not shutil.which("valgrind"):
        return None
    done = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *command],
                          env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    found = re.search(r"Collected : (\d+)", done.stderr)
    return int(found[1]) if found else None


def system_calls(command, environment):
    """How many system calls a command makes; None without strace."""
    if not shutil.which("strace"):
        return None
    with tempfile.NamedTemporaryFile("r") as calls:
        given = [word for name in ("LD_PRELOAD", "LD_LIBRARY_PATH") if name in environment
                 for word in ("-E", "%s=%s" % (name, environment[name]))]
        rest = {name: value for name, value in environment.items() if name != "LD_PRELOAD"}
        subprocess.run(["strace", "-f", "-o", calls.name, *given, *command], env=rest,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return sum(1 for line in calls if "(" in line) or None


def more(count, command, plain, ours):
    """What the shim adds to a count, and the ratio."""
    base = count(command, plain)
    whole = base and count(command, ours)
    return "%d, %.4f" % (whole - base, whole / base) if whole else "?"


HELLO = "hello world of CUDA, simulated"


def starts(bench):
    """Programs that use no CUDA, of the first Python here that has PyTorch `import torch` too, and one that
    allocates once and frees it."""
    commands = {"python3 -c 1": ([sys.executable, "-c", "1"], 40)}  # and how often in a round
    for python in (sys.executable, "/usr/bin/python3"):
        found = pathlib.Path(python).exists() and subprocess.run(
            [python, "-c", "import torch"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if found and found.returncode == 0:
            commands["import torch"] = ([python, "-c", "import torch"], 6)
            break
    commands[HELLO] = ([str(bench.load), "--pairs", "1"], 40)
    return commands


def quick(times):
    """What undisturbed runs take: the mean of the quickest quarter."""
    return statistics.mean(sorted(times)[:max(1, len(times) // 4)])


def start(bench):
    """Target 7: programs that never use CUDA. In turn on one processor; plain twice, for the noise."""
    table = Table("Starting a program that uses no CUDA, and one that hardly does", "", "plain, ms of CPU time",
                  "added, ms", "with the shim, ratio", "plain again, ratio", "page faults: plain, added",
                  "instructions: added, ratio", "system calls: added, ratio")
    before = os.sched_getaffinity(0)
    plain = {**bench.plain, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    ours = {**plain, **bench.traced("bench.%p.gmt")}
    for name, (command, repeat) in starts(bench).items():
        took = {"plain": [], "ours": [], "again": []}
        faults = {which: [] for which in took}
        os.sched_setaffinity(0, {max(before)})
        for _ in range(bench.rounds):
            times = {which: [] for which in took}
            for i in range(repeat):
                for which in list(took)[i % 3:] + list(took)[:i % 3]:
                    seconds, missed = taken(command, ours if which == "ours" else plain)
                    times[which].append(seconds)
                    faults[which].append(missed)
            for which in took:
                took[which].append(quick(times[which]))
        os.sched_setaffinity(0, before)
        # callgrind takes minutes for import torch
        counted = more(instructions, command, plain, ours) if repeat > 10 else "not counted"
        table.add(name, spread([1000 * value for value in took["plain"]], digits=1),
                  spread([1000 * (b - a) for a, b in zip(took["plain"], took["ours"])], digits=2),
                  *(spread([b / a for a, b in zip(took["plain"], took[which])], digits=3)
                    for which in ("ours", "again")),
                  "%d, %s" % (statistics.median(faults["plain"]),
                              spread([b - a for a, b in zip(faults["plain"], faults["ours"])])),
                  counted, more(system_calls, command, plain, ours))
        files = list(bench.folder.glob("bench.*.gmt"))
        if files and name != HELLO:
            sys.exit("bench: %s left a file, though it used no CUDA" % name)
        for file in files:
            file.unlink()
    return table


TARGETS = {"pair": pair, "disabled": disabled, "scale": scale, "threads": threads, "history": history,
           "report": report, "directory": directory, "start": start}


def machine():
    model = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return "%s, %d cores, Linux %s, %s" % (model.group(1) if model else "?", os.cpu_count(),
                                           os.uname().release.split("-")[0], datetime.date.today())


def build_text(build):
    """Which build the figures are of: version, commit and build type."""
    info = json.loads((build / "meson-info/meson-info.json").read_text())
    source = info["directories"]["source"]
    options = {option["name"]: option["value"] for option in
               json.loads((build / "meson-info/intro-buildoptions.json").read_text())}
    project = json.loads((build / "meson-info/intro-projectinfo.json").read_text())
    commit = subprocess.run(["git", "-C", source, "describe", "--always", "--dirty", "--abbrev=10"],
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return "gpumemtrace %s, %s, %s build" % (
        project["version"], "commit " + commit.stdout.strip() if commit.returncode == 0 else
        "of no commit", options["buildtype"])


def peers():
    """Which other recorders run beside us."""
    found = shutil.which("heaptrack") and subprocess.run(["heaptrack", "--version"], stdout=subprocess.PIPE,
                                                         stderr=subprocess.DEVNULL, text=True).stdout.split()
    return ("Beside it: %s; memray, which Debian does not have, is not run."
            % (" ".join(found) if found else "heaptrack is not installed and was not run"))


def write(path, text):
    whole = pathlib.Path(path).read_text()
    if BEGIN not in whole or END not in whole:
        sys.exit("bench: %s lacks the lines %s and %s" % (path, BEGIN, END))
    head, rest = whole.split(BEGIN)
    pathlib.Path(path).write_text(head + BEGIN + "\n" + text + END + rest.split(END)[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default="build")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--against", type=pathlib.Path, metavar="BUILD")
    parser.add_argument("--write", metavar="FILE")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    options = parser.parse_args()
    unknown = set(options.targets) - set(TARGETS)
    if unknown:
        parser.error("no target %s: %s" % (", ".join(sorted(unknown)), ", ".join(TARGETS)))
    text = "%s. %s. %s Medians of %d rounds (%s).\n\n" % (
        build_text(options.build.resolve()), machine(), peers(), options.rounds,
        "their 95 % intervals" if options.rounds >= 6 else "least to most")
    print(text, end="")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options.build.resolve(), options.rounds, folder, options.against and options.against.resolve())
        for name in options.targets or TARGETS:
            table = TARGETS[name](bench).markdown()
            print(table, flush=True)
            text += table + "\n"
    if options.write:
        write(options.write, text)


if __name__ == "__main__":
    main()
