#!/usr/bin/env python3
"""Whether all who tell of module loads in one process tell the same: loads.py FOLDER. NAME.loads is what
loads.c wrote in a run, NAME.json, where gpumemtrace recorded the run too, dump's output. Exit status 1 if
two tellers of one process differ. Runs may differ from each other: XLA's autotuner loads what it measured to
be fastest."""
import collections
import json
import pathlib
import sys

LOADS = ("cuModuleLoadData", "cuModuleLoadFat", "cuLibraryLoad")
UNLOADS = ("cuModuleUnload", "cuLibraryUnload")
MODULE = 1  # enum gm_cost


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def succeeded(lines, by, names):
    return [line for line in lines if line["by"] == by and line["function"].startswith(names) and
            line["result"] == 0]


def tellers_of(lines, dump):
    """(loads, unloads) by each teller of a run."""
    tellers = {name: (len(succeeded(lines, by, LOADS)), len(succeeded(lines, by, UNLOADS)))
               for by, name in (("call", "wrappers"), ("cupti", "CUPTI"))}
    if dump:
        costs = [cost for cost in dump["costs"] if cost["cost"] == MODULE]
        tellers["gpumemtrace, " + dump["backend"]] = (sum(cost["calls"] for cost in costs),
                                                     sum(cost["ends"] for cost in costs))
    return {name: counts for name, counts in tellers.items() if counts != (0, 0)}


def missed(lines):
    """Calls that the other of two tellers in the process did not tell of."""
    both = {"call", "cupti"} <= {line["by"] for line in lines}
    return [line for line in lines if both and
            ((line["by"] == "call" and line["told"] != 1) or
             (line["by"] == "cupti" and not line["inside"]))]


def show(line):
    return "%s by %s of %d B (%s), result %d, thread %d %s" % (
        line["function"], line["caller"], line["bytes"], line["hash"], line["result"],
        line["thread"], line["name"])


def loaded(lines):
    return collections.Counter((line["function"], line["bytes"], line["hash"])
                               for by in ("call", "cupti") for line in succeeded(lines, by, LOADS)
                               if by == "call" or not line["inside"])


def print_run(name, lines, dump):
    tellers = tellers_of(lines, dump)
    same = len(set(tellers.values())) == 1 and len(tellers) > (not name.startswith("wrapped"))
    modules = collections.Counter(line["function"] for line in lines if line["by"] == "resource")
    print("%-9s %s  %s%s" % (
        name, "same" if same else "DIFFERENT",
        "; ".join("%s %d loads, %d unloads" % (who, *counts) for who, counts in tellers.items()),
        "".join("; %d %s" % (count, what) for what, count in sorted(modules.items()))))
    for line in missed(lines):
        print("    only the %s: %s" % ("wrappers" if line["by"] == "call" else "callbacks", show(line)))
    return same


def main():
    folder = pathlib.Path(sys.argv[1])
    images, same = {}, True
    for path in sorted(folder.glob("*.loads")):
        dump = path.with_suffix(".json")
        lines = lines_of(path)
        same = print_run(path.stem, lines, json.loads(dump.read_text()) if dump.exists() else None) and same
        images[path.stem] = loaded(lines)
    every = collections.Counter()
    for counts in images.values():
        every |= counts
    for image, most in sorted(every.items()):
        fewer = [name for name, counts in images.items() if counts[image] < most]
        if fewer:
            print("%s of %d B (%s): fewer in %s" % (*image, ", ".join(fewer)))
    sys.exit(0 if same else 1)


if __name__ == "__main__":
    main()
