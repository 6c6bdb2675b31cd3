#!/usr/bin/env python3
"""What recording and reporting cost, as ratios of things that ran in turn.

bench.py --build BUILD [--rounds N] [--write FILE] [TARGET...]

Each target prints a table; --write puts them between the marks of a Markdown file. Targets: pair,
disabled, scale, threads, history, report, directory, start. Nothing is asserted: machines are noisy.
"""
import argparse
import datetime
import json
import os
import pathlib
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

    def __init__(self, build, rounds, folder):
        self.rounds, self.folder = rounds, pathlib.Path(folder)
        self.shim = build / "src/interpose/libgpumemtrace.so"
        self.report = build / "tools/gpumem-report/gpumem-report"
        self.load = build / "tests/bench/load/load"
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

    def run_load(self, environment, *options, before=()):
        done = subprocess.run([*before, str(self.load), *map(str, options)], env=environment,
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
            for name, variant in variants.items():
                results[name].append(variant())
        return results


def figures(results, name, figure):
    return [result[figure] for result in results[name]]


def added(results, name, base, figure):
    return [a[figure] - b[figure] for a, b in zip(results[name], results[base])]


def spread(values, unit="", digits=0):
    return "%.*f%s (%.*f to %.*f)" % (digits, statistics.median(values), unit, digits, min(values),
                                      digits, max(values))


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
    for live in (3 * few, many):
        results = bench.in_turn({
            "plain": lambda: bench.run_load(bench.plain, "--live", live, "--pairs", 1),
            "ours": lambda: bench.run_load(bench.traced(), "--live", live, "--pairs", 1),
        })
        table.add("added to an allocation after %d live ones, ns" % live,
                  spread(added(results, "ours", "plain", "last_ns")))
        blocks = (bench.folder / "bench.gmt").stat().st_blocks * 512
        if live == few * 3:
            small = blocks
    table.add("file bytes for each of %d live allocations" % many,
              "%.0f" % ((blocks - small) / (many - 3 * few)))
    for pairs in (500000, 50000000):
        result = bench.run_load(bench.traced(), "--pairs", pairs, "--sites", 64)
        table.add("%.0e events: file and resident size" % (2 * pairs), "%d KiB, %d KiB" % (
            (bench.folder / "bench.gmt").stat().st_blocks / 2, result["rss_kib"]))
    return table


def threads(bench):
    """Target 4: threads that allocate at once."""
    table = Table("Threads that allocate and free at once, two of them running at a time at most",
                  "threads", "plain, ns a call", "added, ns a call of CPU time", "of one thread's")
    one = None
    for count in (1, 2, 4, 16, 64):
        shape = ("--threads", count, "--pairs", max(400000 // count, 20000), "--sites", 16)
        results = bench.in_turn({
            "plain": lambda: bench.run_load(bench.plain, *shape),
            "ours": lambda: bench.run_load(bench.traced(), *shape),
        })
        extra = [value / 2 for value in added(results, "ours", "plain", "pair_cpu_ns")]
        one = one or statistics.median(extra)
        table.add(count, "%.0f" % (statistics.median(figures(results, "plain", "pair_cpu_ns")) / 2),
                  spread(extra), "%.2f" % (statistics.median(extra) / one))
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
    table = Table("The report on 10^6 live allocations from 10^5 sites", "command", "seconds", "MiB",
                  "target")
    results = bench.in_turn({
        name: lambda arguments=arguments: timed([str(bench.report), *arguments])
        for name, arguments in {
            "summary": ["summary", big], "summary --json": ["summary", "--json", big],
            "html": ["html", "-o", str(bench.folder / "big.html"), big]}.items()})
    for name, target in (("summary", "1.5 s, 1024 MiB"), ("summary --json", "3 s"), ("html", "5 s")):
        failed = [r["status"] for r in results[name] if r["status"]]
        table.add(name + (" (failed)" if failed else ""), spread(figures(results, name, "s"), digits=2),
                  "%.0f" % max(figures(results, name, "mib")), target)
    return table


def history(bench):
    """Target 5: reading a complete history."""
    pairs = 5000000
    bench.run_load(bench.traced("all.gmt", GPUMEMTRACE_EVENTS="all", GPUMEMTRACE_MAX_FILE="8GiB"),
                   "--pairs", pairs, "--sites", 64)
    path = bench.folder / "all.gmt"
    results = bench.in_turn({"timeline": lambda: timed([str(bench.report), "timeline", str(path)])})
    table = Table("A complete history of 10^7 events", "", "figure")
    table.add("timeline, million events a second", spread(
        [2 * pairs / 1e6 / result["s"] for result in results["timeline"]], digits=1))
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


def start(bench):
    """Target 7: programs that never use CUDA."""
    table = Table("Starting a program that uses no CUDA", "", "plain, ms", "with the shim, ratio")
    commands = {"python3 -c 1": [sys.executable, "-c", "1"]}
    if subprocess.run([sys.executable, "-c", "import torch"], stderr=subprocess.DEVNULL).returncode == 0:
        commands["import torch"] = [sys.executable, "-c", "import torch"]
    for name, command in commands.items():
        repeat = 20 if name != "import torch" else 1

        def several(environment):
            begin = time.perf_counter()
            for _ in range(repeat):
                subprocess.run(command, env=environment, check=True)
            return {"s": (time.perf_counter() - begin) / repeat}
        results = bench.in_turn({"plain": lambda: several(bench.plain), "ours": lambda: several(bench.traced())})
        table.add(name, spread([1000 * value for value in figures(results, "plain", "s")], digits=1),
                  spread([a["s"] / b["s"] for a, b in zip(results["ours"], results["plain"])],
                         digits=3))
    return table


TARGETS = {"pair": pair, "disabled": disabled, "scale": scale, "threads": threads, "history": history,
           "report": report, "directory": directory, "start": start}


def machine():
    model = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return "%s, %d cores, Linux %s, %s" % (model.group(1) if model else "?", os.cpu_count(),
                                           os.uname().release.split("-")[0], datetime.date.today())


def write(path, text):
    whole = pathlib.Path(path).read_text()
    if BEGIN not in whole or END not in whole:
        sys.exit("bench: %s lacks the lines %s and %s" % (path, BEGIN, END))
    head, rest = whole.split(BEGIN)
    pathlib.Path(path).write_text(head + BEGIN + "\n" + text + END + rest.split(END)[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default="build")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", metavar="FILE")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    options = parser.parse_args()
    unknown = set(options.targets) - set(TARGETS)
    if unknown:
        parser.error("no target %s: %s" % (", ".join(sorted(unknown)), ", ".join(TARGETS)))
    text = "%s. Medians of %d rounds (least to most).\n\n" % (machine(), options.rounds)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options.build.resolve(), options.rounds, folder)
        for name in options.targets or TARGETS:
            table = TARGETS[name](bench).markdown()
            print(table, flush=True)
            text += table + "\n"
    if options.write:
        write(options.write, text)


if __name__ == "__main__":
    main()
