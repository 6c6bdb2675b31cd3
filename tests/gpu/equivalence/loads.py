#!/usr/bin/env python3
"""Reads what loads.c wrote: loads.py FOLDER. NAME.loads is the log of a run, NAME.json, where the run was
recorded, dump's output. Prints how often each teller told of each loading function, calls that one of two
tellers in the same process missed, and what one run loaded that another did not."""
import collections
import json
import pathlib
import sys

LOADS = ("cuModuleLoad", "cuLibraryLoad")
UNLOADS = ("cuModuleUnload", "cuLibraryUnload")


def lines_of(path):
    lines = []
    for text in path.read_text().splitlines():
        try:
            lines.append(json.loads(text))
        except json.JSONDecodeError:
            print("%s: not JSON: %s" % (path.name, text))
    return lines


def show(line, start):
    if line["by"] == "resource":
        return "%9.1f ms  thread %d %-15s %s module %s, %d B, %s, inside %s" % (
            line["ms"] - start, line["thread"], line["name"], line["function"], line["handle"],
            line["bytes"], line["hash"], line["inside"] or "nothing")
    return "%9.1f ms  thread %d %-15s %s %d B %s -> %s, result %d, by %s%s" % (
        line["ms"] - start, line["thread"], line["name"], line["function"], line["bytes"],
        line["hash"], line["handle"], line["result"], line["caller"],
        ", inside %s" % (line["inside"] or "nothing") if "inside" in line else "")


def succeeded(lines, by, names):
    return [line for line in lines if line["by"] == by and line["function"].startswith(names) and
            line.get("result", 0) == 0]


def print_run(name, lines, recorded):
    start = min((line["ms"] for line in lines if "ms" in line), default=0)
    by = collections.Counter((line["by"], line["function"]) for line in lines if line["by"] != "count"
                             and line["by"] != "start")
    print("== %s" % name)
    for line in lines:
        if line["by"] == "start":
            print("   CUPTI subscribed at %.1f ms, error %d" % (line["ms"] - start, line["error"]))
    for (teller, function), calls in sorted(by.items()):
        print("   %-9s %-28s %5d" % (teller, function, calls))
    for line in lines:
        if line["by"] == "count" and any(part in line["function"] for part in
                                         ("Module", "Library", "Link")):
            print("   all calls %-28s %5d" % (line["function"], line["calls"]))
    print("   succeeded: wrapped %d loads, %d unloads; CUPTI %d, %d; modules loaded %d, unloaded %d" % (
        *(len(succeeded(lines, teller, names)) for teller in ("call", "cupti")
          for names in (LOADS, UNLOADS)),
        *(len(succeeded(lines, "resource", (name,))) for name in ("loaded", "unload"))))
    for cost in recorded.get("costs", []):
        if cost["cost"] == 1:
            print("   gpumemtrace (%s): loads %d, unloads %d, live %d, by %s" % (
                recorded["backend"], cost["calls"], cost["ends"], cost["live"], cost["library"]))
    both = any(line["by"] == "start" and line["error"] == 0 for line in lines) and \
        any(line["by"] == "call" for line in lines)
    if both:
        for line in lines:
            if line["by"] == "call" and line["told"] != 1:
                print("   CUPTI told %d times: %s" % (line["told"], show(line, start)))
            if line["by"] == "cupti" and not line["inside"] and \
                    line["function"].startswith(LOADS + UNLOADS):
                print("   not wrapped:        %s" % show(line, start))


def loaded(lines):
    teller = "call" if any(line["by"] == "call" for line in lines) else "cupti"
    return collections.Counter((line["function"], line["bytes"], line["hash"])
                               for line in succeeded(lines, teller, LOADS))


def main():
    folder = pathlib.Path(sys.argv[1])
    runs = {}
    for path in sorted(folder.glob("*.loads")):
        dump = path.with_suffix(".json")
        runs[path.stem] = lines_of(path)
        print_run(path.stem, runs[path.stem], json.loads(dump.read_text()) if dump.exists() else {})
    first, *others = runs
    for other in others:
        one, two = loaded(runs[first]), loaded(runs[other])
        for side, only in ((first, one - two), (other, two - one)):
            for (function, size, content), count in sorted(only.items()):
                print("only in %s (against %s): %d times %s of %d B, %s" % (
                    side, other if side == first else first, count, function, size, content))
    print("-- every load, run by run")
    for name, lines in runs.items():
        start = min((line["ms"] for line in lines if "ms" in line), default=0)
        print("== %s" % name)
        for line in lines:
            if line["by"] in ("call", "cupti", "resource"):
                print("%-8s %s" % (line["by"], show(line, start)))


if __name__ == "__main__":
    main()
