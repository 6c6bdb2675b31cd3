"""What recording costs in a training step, a captured step and a loop of graph launches: turns.py BUNDLE OUT [TURNS]

Of each program two processes run beside each other, one without the shim and one with it, and take turns on the GPU: while one
works, the other waits. A turn of both is a pair, and the one that begins alternates. It prints the median ratio of the pairs with its 95 %
interval (by the order of the ratios), and how many samples of the ledger the recorded process made. OUT/turns.tsv has all pairs.
"""
import json
import os
import pathlib
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from interval import interval  # noqa: E402

bundle, out = sys.argv[1], sys.argv[2]
turns = int(sys.argv[3]) if len(sys.argv) > 3 else 40
here = os.path.dirname(os.path.abspath(__file__))
steps = next(path for path in (f"{bundle}/ledger_steps", f"{out}/ledger_steps") if os.path.exists(path))
PROGRAMS = (  # the command, and of each piece of work how often a turn does it
    ("graph-loop", [steps, "graph-loop"], (("loop", 1000),)),
    ("torch-turns", [os.environ.get("PYTHON", "python3"), f"{here}/torch_captures.py", "turns"], (("step", 10), ("graph", 10))),
)


def start(command, file):
    environment = dict(os.environ, GPUMEMTRACE_QUIET="1")
    if file:
        environment.update(LD_PRELOAD=f"{bundle}/libgpumemtrace.so", GPUMEMTRACE_OUT=file)
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def turn(process, work, times):
    """Microseconds that one piece of the work took."""
    process.stdin.write(f"{work} {times}\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def measure(name, command, works, table):
    file = f"{out}/{name}.gmt"
    if os.path.exists(file):
        os.remove(file)
    processes = [start(command, None), start(command, file)]
    try:
        pairs_of = take_turns(processes, name, works, table)
    finally:
        for process in processes:
            process.kill()  # nothing is left where a turn failed
    report = subprocess.run([f"{bundle}/gpumem-report", "summary", "--json", file], capture_output=True, text=True, timeout=90)
    samples = sum(len(entry["history"]) for entry in json.loads(report.stdout)["ledger"])
    for work, pairs in pairs_of.items():
        ratios = [traced / plain for plain, traced in pairs]
        low, high = interval(ratios)
        print(f"ok cost {name} {work}: {statistics.median(ratios):.4f} of plain (95 %: {low:.4f} to {high:.4f}) in {len(pairs)} pairs; "
              f"{statistics.median(plain for plain, _ in pairs):.1f} us plain, {statistics.median(traced for _, traced in pairs):.1f} us "
              f"recorded; {samples} samples of the ledger in that process", flush=True)


def take_turns(processes, name, works, table):
    for process in processes:
        if "ready\n" not in iter(process.stdout.readline, ""):  # the steps of its start come before
            raise RuntimeError("the program did not get ready")
    results = {}
    for work, times in works:
        for process in processes:
            turn(process, work, times)  # the first turn is not counted
        for i in range(turns):
            took = {}
            for which in ((0, 1), (1, 0))[i % 2]:
                took[which] = turn(processes[which], work, times)
            results.setdefault(work, []).append((took[0], took[1]))
            table.write(f"{name}\t{work}\t{i}\t{took[0]:.3f}\t{took[1]:.3f}\n")
    for process in processes:
        process.communicate(timeout=30)
        if process.returncode:
            raise RuntimeError(f"the program ended with {process.returncode}")
    return results


with open(f"{out}/turns.tsv", "w") as table:
    for program in PROGRAMS:
        try:
            measure(*program, table)
        except (OSError, RuntimeError, ValueError, KeyError, subprocess.SubprocessError) as error:
            print(f"FAIL cost {program[0]}: {type(error).__name__} {error}", flush=True)
