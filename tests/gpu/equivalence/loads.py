#!/usr/bin/env python3
"""Whether gpumemtrace counts the module loads that wrappers outside it see: loads.py FOLDER. NAME.loads is
what loads.c wrote in a run, NAME.json, where gpumemtrace recorded the run too, dump's output. Exit status 1 if
the two differ in a run. Runs may differ from each other: XLA's autotuner goes by what it measures."""
import collections
import json
import pathlib
import sys

LOADS = ("cuModuleLoadData", "cuModuleLoadFat", "cuLibraryLoad")
UNLOADS = ("cuModuleUnload", "cuLibraryUnload")
MODULE = 1  # enum gm_cost


def succeeded(lines, names):
    return [line for line in lines if line["function"].startswith(names) and line["result"] == 0]


def recorded(dump):
    """(loads, unloads) that gpumemtrace recorded."""
    costs = [cost for cost in dump["costs"] if cost["cost"] == MODULE]
    return sum(cost["calls"] for cost in costs), sum(cost["ends"] for cost in costs)


def print_run(name, lines, dump):
    """False: gpumemtrace and the wrappers differ, or nothing was loaded."""
    seen = len(succeeded(lines, LOADS)), len(succeeded(lines, UNLOADS))
    tellers = {"wrappers": seen}
    if dump:
        tellers["gpumemtrace, " + dump["backend"]] = recorded(dump)
    same = set(tellers.values()) == {seen}
    verdict = "DIFFERENT" if not same else "NOTHING" if not seen[0] else "same" if dump else ""
    print("%-9s %-9s %s" % (
        name, verdict,
        "; ".join("%s %d loads, %d unloads" % (who, *counts) for who, counts in tellers.items())))
    return same and seen[0] > 0


def print_images(images):
    """Images that some runs loaded more often than others."""
    every = collections.Counter()
    for counts in images.values():
        every |= counts
    for image, most in sorted(every.items()):
        fewer = [name for name, counts in images.items() if counts[image] < most]
        if fewer:
            print("%s of %d B (%s): fewer in %s" % (*image, ", ".join(fewer)))


def main():
    runs = sorted(pathlib.Path(sys.argv[1]).glob("*.loads"))
    if not runs:
        sys.exit("%s has no .loads: is libloads.so in the bundle?" % sys.argv[1])
    images, same = {}, True
    for path in runs:
        path_json = path.with_suffix(".json")
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        dump = json.loads(path_json.read_text()) if path_json.exists() else None
        same = print_run(path.stem, lines, dump) and same
        images[path.stem] = collections.Counter(
            (line["function"], line["bytes"], line["hash"]) for line in succeeded(lines, LOADS))
    print_images(images)
    sys.exit(0 if same else 1)


if __name__ == "__main__":
    main()
