#!/usr/bin/env python3
"""What keeps PyTorch's memory alive, on a GPU:  run.py BUNDLE OUT
BUNDLE is the folder of bundle.sh. Prints a line `ok NAME: ...` or `FAIL NAME: ...` for each planted holder, and a sum;
OUT gets the files and documents."""
import json
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
MIB = 1 << 20
# function, bytes at least, words that are in the chain in this order
KINDS = (
    ("failing", 4 * MIB, ("module __main__", "saved_error", "RuntimeError.__traceback__", "frame failing", "local activations")),
    ("hook", 4 * MIB, ("module __main__", "hooked", "Tensor._backward_hooks", "closure variable captured", "Tensor")),
    ("closure", 4 * MIB, ("module __main__", "callback", "closure variable captured", "Tensor")),
    ("load", 8 * MIB, ("module __main__", "load", "functools.lru_cache of", "Tensor")),
    ("Session.__init__", 20 * MIB, ("module __main__", "sessions", "dict (5 entries)", "Session.kv", "Tensor")),
    ("losses_with_graph", 24 * MIB, ("module __main__", "losses", "list (6 entries)", "Tensor", "grad_fn", "SavedVariable")),
    ("cycle", 12 * MIB, ("unreachable cycle", "Node.tensor", "Tensor")),
    ("optimizer", 8 * MIB, ("module __main__", "adam", "Adam.state", "exp_avg", "Tensor")),
    ("data_loader", 4 * MIB, ("module __main__", "batches", "list (4 entries)", "Tensor")),
    ("cuda_graph", 4 * MIB, ("module __main__", "graph_output", "Tensor")),
)
failures = 0


def say(good, name, text):
    global failures
    failures += not good
    print("ok" if good else "FAIL", f"{name}: {text}", flush=True)


def in_order(words, chain):
    text, at = " \u2192 ".join(chain), 0
    for word in words:
        at = text.find(word, at)
        if at < 0:
            return False
        at += len(word)
    return True


class Run:
    def __init__(self, bundle, out):
        self.bundle, self.out = pathlib.Path(bundle).resolve(), pathlib.Path(out).resolve()
        self.out.mkdir(parents=True, exist_ok=True)

    def start(self, name, *arguments, **settings):
        self.file = self.out / f"{name}.gmt"
        for old in self.out.glob(f"{name}.gmt*"):
            old.unlink()
        environment = dict(os.environ, LD_PRELOAD=str(self.bundle / "libgpumemtrace.so"), GPUMEMTRACE_OUT=str(self.file),
                           GPUMEMTRACE_QUIET="1", **settings)
        return subprocess.Popen([sys.executable, str(HERE / "planted.py"), *arguments], env=environment, text=True,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=open(self.out / f"{name}.err", "w"))

    def document(self, name, command, *arguments):
        began = time.monotonic()
        done = subprocess.run([self.bundle / "gpumem-report", command, "--json", *map(str, arguments)], capture_output=True,
                              text=True, timeout=300)
        (self.out / f"{name}.json").write_text(done.stdout)
        if done.returncode:
            say(False, name, f"ended with {done.returncode}: {done.stderr.strip()}")
            return {"holders": [], "sites": [], "holders_taken": {}}, 0
        return json.loads(done.stdout), time.monotonic() - began


def holders_of(doc, function):
    sites = {site["id"]: [frame["function"] or "" for frame in site["stack"] if frame["kind"] == "python"]
             for site in doc["sites"]}
    return [holder for holder in doc["holders"] if any(name == function or name.endswith("." + function)
                                                       for name in sites[holder["site"]])]


def planted(run):
    program = run.start("planted")
    if program.stdout.readline().strip() != "planted":
        say(False, "planted", (run.out / "planted.err").read_text()[-500:])
        return
    doc, seconds = run.document("planted", "holders", program.pid)
    taken = doc["holders_taken"]
    say(bool(taken), "holders", f"{taken.get('objects')} objects, CPython {taken.get('python')}, {seconds:.1f} s")
    for function, least, words in KINDS:
        found = holders_of(doc, function)
        right = [holder for holder in found if in_order(words, holder["chain"])]
        total = sum(holder["bytes"] for holder in right)
        sure = all(holder["complete"] for holder in right)
        say(total >= least and sure, function, f"{total / MIB:.1f} MiB, complete {sure}: "
            f"{[' -> '.join(holder['chain']) for holder in (right or found)[:2]]}")
    unknown = [holder for holder in doc["holders"] if not holder["complete"]]
    print(f"   not complete: {sum(holder['bytes'] for holder in unknown) / MIB:.1f} MiB in {len(unknown)} chains")
    for holder in unknown[:10]:
        print("     ", holder["bytes"], holder["note"], " -> ".join(holder["chain"]))
    nowhere = sum(holder["bytes"] for holder in unknown if holder["note"].startswith("neither"))
    say(nowhere < MIB, "libraries", f"{nowhere} bytes have neither a chain nor a library that keeps them")
    garbage = sum(holder["bytes"] for holder in doc["holders"] if holder["garbage"])
    before, _ = run.document("before", "summary", run.file)
    program.stdin.write("collect\n")
    program.stdin.flush()
    program.stdout.readline()
    after, _ = run.document("after", "summary", run.file)
    freed = sum(row["allocated_bytes"] for row in before["torch"]) - sum(row["allocated_bytes"] for row in after["torch"])
    say(freed == garbage > 0, "gc.collect", f"freed {freed} B, called garbage {garbage} B")
    program.stdin.close()
    program.wait()


def captured(run):
    program = run.start("oom", "oom", GPUMEMTRACE_HOLDERS="oom")
    program.wait()
    doc, _ = run.document("oom", "oom", run.file)
    right = [holder for holder in doc["holders"] if in_order(("module __main__", "losses", "list (", "SavedVariable"), holder["chain"])]
    total, all_bytes = sum(h["bytes"] for h in right), sum(h["bytes"] for h in doc["holders"])
    say(total > all_bytes / 2 > 0, "oom", f"{total / MIB:.0f} of {all_bytes / MIB:.0f} MiB by {right[0]['chain'] if right else []}")


run = Run(*sys.argv[1:3])
planted(run)
captured(run)
print(f"{failures} failed")
sys.exit(failures > 0)
