"""The medians of load.jsonl, each mode against the plain run of its round: summary.py LOAD.JSONL"""
import json
import statistics
import sys


def main(path):
    with open(path) as lines:
        runs = [json.loads(line) for line in lines]
    if not any(run["mode"] != "plain" for run in runs):
        sys.exit(f"{path} has no run to hold against a plain one")
    pair = {(run["api"], run["mode"], run["round"]): run["pair_ns"] for run in runs}
    print(f"{'api':8} {'mode':10} {'ns a pair':>10} {'of plain':>9}   spread")
    for api, mode in dict.fromkeys((run["api"], run["mode"]) for run in runs):
        rounds = [r for a, m, r in pair if (a, m) == (api, mode) and (api, "plain", r) in pair]
        ratios = [pair[api, mode, r] / pair[api, "plain", r] for r in rounds]
        if not rounds:
            sys.exit(f"{api}, {mode}: no plain run of the same round")
        print(f"{api:8} {mode:10} {statistics.median(pair[api, mode, r] for r in rounds):10.0f} "
              f"{statistics.median(ratios):8.2f}x   {min(ratios):.2f} to {max(ratios):.2f}")


if __name__ == "__main__":
    main(sys.argv[1])
