"""compare.py BUNDLE OUT: what the driver's pool reserves under other settings, predicted and measured.

Programs of pool_program.c are recorded with two release thresholds and run with six; the programs of
../grid/programs.py are recorded under PyTorch's default and run under backend:cudaMallocAsync. OUT gets
`results.tsv`, a line for each pair: equal, within the interval, or neither.
"""
import concurrent.futures
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "grid"))
import grid  # noqa: E402  (the folder beside this one)

KINDS = range(12)
THRESHOLDS = {"0": "release_threshold:0", str(64 << 20): "release_threshold:64MiB",
              str(256 << 20): "release_threshold:256MiB", str(1 << 30): "release_threshold:1GiB",
              str(4 << 30): "release_threshold:4GiB", "max": "release_threshold:max"}
ASYNC = "backend:cudaMallocAsync"
RUNS = 3


def pool(bundle, kind, threshold, **environment):
    """What the pool says of itself at the end: reserved and used peak."""
    done = subprocess.run([os.path.join(bundle, "pool_program"), str(kind), threshold], capture_output=True,
                          text=True, timeout=60, check=True, env=dict(os.environ, **environment))
    return [int(word) for word in done.stdout.split()]


def predicted(bundle, path, settings):
    done = subprocess.run([os.path.join(bundle, "gpumem-report"), "whatif", "--json", "--conf",
                           ";".join(settings), path], capture_output=True, text=True, timeout=120, check=True)
    return {row["conf"]: row for row in json.loads(done.stdout)["whatif"]}


def verdict(row, reserved, used):
    if row["allocated_peak_bytes"] != used:
        return "used"
    if row["reserved_peak_bytes"] == reserved:
        return "equal"
    return "within" if row["reserved_peak_low_bytes"] <= reserved <= row["reserved_peak_high_bytes"] else "neither"


def pools(bundle, out):
    """A result for each kind, recorded threshold and other threshold."""
    for kind in KINDS:
        measured = {setting: pool(bundle, kind, threshold) for threshold, setting in THRESHOLDS.items()}
        for recorded in ("default", "max"):
            path = os.path.join(out, f"pool-{kind}-{recorded}.gmt")
            pool(bundle, kind, recorded, LD_PRELOAD=os.path.join(bundle, "libgpumemtrace.so"),
                 GPUMEMTRACE_EVENTS="all", GPUMEMTRACE_OUT=path, GPUMEMTRACE_QUIET="1")
            for setting, row in predicted(bundle, path, measured).items():
                yield f"pool {kind} from {recorded}", setting, row, *measured[setting]


def programs(words):
    """A result for each run of PyTorch's programs."""
    with concurrent.futures.ThreadPoolExecutor(12) as workers:
        recorded = {name: workers.submit(grid.run, words, name, "default", "--snapshot",
                                         os.path.join(words.out, name + ".pickle")) for name in words.names}
        runs = [(name, workers.submit(grid.run, words, name, ASYNC))
                for name in words.names for _ in range(RUNS)]
        rows = {name: predicted(words.bundle, os.path.join(words.out, name + ".pickle"), [ASYNC])[ASYNC]
                for name, task in recorded.items() if task.result()}
        for name, task in runs:
            measured = task.result()
            if measured and not measured["oom"] and name in rows:
                yield name, ASYNC, rows[name], measured["reserved_peak"], measured["allocated_peak"]


def main():
    words = type("Words", (), {"bundle": os.path.abspath(sys.argv[1]), "out": os.path.abspath(sys.argv[2]),
                               "names": grid.names()})
    counts = {}
    with open(os.path.join(words.out, "results.tsv"), "w", encoding="utf-8") as file:
        print("program", "setting", "verdict", "exact", "measured", "predicted", "low", "high", sep="\t",
              file=file)
        for source in (pools(words.bundle, words.out), programs(words)):
            for name, setting, row, reserved, used in source:
                said = verdict(row, reserved, used)
                counts[said] = counts.get(said, 0) + 1
                print(name, setting, said, row["exact"], reserved, row["reserved_peak_bytes"],
                      row["reserved_peak_low_bytes"], row["reserved_peak_high_bytes"], sep="\t", file=file)
    print("pairs:", counts)
    return counts.get("neither", 0) > 0


if __name__ == "__main__":
    sys.exit(main())
