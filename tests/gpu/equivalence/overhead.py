#!/usr/bin/env python3
"""What each backend cost: overhead.py FOLDER. NAME.MODE.times holds the figures that NAME printed under
MODE, a line a run; runs of the modes took turns, so the n-th of each belong together."""
import json
import pathlib
import statistics
import sys


def figures(path):
    return [json.loads(line) for line in path.read_text().splitlines() if line]


def timed(figure):
    return figure.endswith("_ms") or figure.startswith("cuda")


def main():
    folder = pathlib.Path(sys.argv[1])
    runs = {}
    for path in sorted(folder.glob("*.times")):
        name, mode = path.name[:-len(".times")].rsplit(".", 1)
        runs.setdefault(name, {}).setdefault("preload" if mode == "control" else mode, []).extend(
            figures(path))
    print("%-18s %-30s %-9s %10s %10s %8s" % ("program", "figure", "backend", "without", "with", "cost"))
    for name, modes in runs.items():
        base = "plain" if "plain" in modes else "preload"
        for mode in (mode for mode in modes if mode != base):
            for figure in filter(timed, modes[base][0] if modes[base] else ()):
                pairs = [(a[figure], b[figure]) for a, b in zip(modes[base], modes[mode])]
                if not pairs:
                    continue
                before, after = (statistics.median(side) for side in zip(*pairs))
                cost = statistics.median(b / a - 1 for a, b in pairs) * 100
                print("%-18s %-30s %-9s %10.3f %10.3f %+7.1f%%%s" % (
                    name, figure, mode, before, after, cost,
                    "" if base == "plain" else "  (against preload)"))


if __name__ == "__main__":
    main()
