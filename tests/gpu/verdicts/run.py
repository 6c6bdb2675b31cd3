#!/usr/bin/env python3
"""The verdicts about PyTorch programs whose truth is known, on a GPU:
run.py BUNDLE OUT [leaks|healthy|ooms...]
BUNDLE is the folder of bundle.sh. Prints a line `ok NAME: ...` or `FAIL NAME: ...` for each program, below it
the first three lines of its report, and a sum. OUT gets each program's file, report and document."""
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
LEAKS = ("losses", "lru_cache", "sessions", "hook", "traceback", "attribute", "kv", "evaluation", "concatenation",
         "threads", "default", "cycles")
ENDS = {"end": 0, "raises": 1, "exit": 3, "_exit": 0}
HEALTHY = ("one_step", "cached_inference", "compiled", "lora", "two_phases", "load_only", "load_and_step", "training",
           "random_batches", "accumulation", "prefetch", "checkpoints")
# the verdicts that are right, what the first lines or the advice must name, and how the program ends
OOMS = {"weights": ("exhausted", "weights", 1), "activations": ("exhausted", "activations", 1),
        "leak": ("exhausted", "remember", 1), "fragmented": ("fragmented", "", 1), "fraction": ("limit", "", 1),
        "pinned": ("host", "", 1), "neighbour": ("other-processes", "", 1), "batch_search": ("exhausted", "", 0)}
KEPT = {"losses": "keep_losses", "hook": "train_step|keep_hook|<lambda>", "traceback": "fail|keep_traceback",
        "attribute": "keep_attribute", "kv": "keep_kv", "evaluation": "evaluate|keep_evaluation",
        "threads": "work|keep_threads", "cycles": "__init__|keep_cycles"}


class Run:
    def __init__(self, bundle, out):
        self.bundle, self.out = bundle, out

    def report(self, *arguments):
        return subprocess.run([self.bundle / "gpumem-report", *arguments], capture_output=True, text=True, timeout=120)

    def record(self, name, command, **settings):
        file = self.out / f"{name}.gmt"
        file.unlink(missing_ok=True)
        environment = dict(os.environ, LD_PRELOAD=str(self.bundle / "libgpumemtrace.so"), GPUMEMTRACE_OUT=str(file),
                           GPUMEMTRACE_QUIET="1", **settings)
        with open(self.out / f"{name}.said", "w") as said:
            ended = subprocess.run(command, env=environment, stdout=said, stderr=said, timeout=200).returncode
        text = self.report("summary", "--color", "never", str(file)).stdout
        (self.out / f"{name}.txt").write_text(text)
        document = self.report("summary", "--json", str(file)).stdout
        (self.out / f"{name}.json").write_text(document)
        gate = self.report("check", "--leaks", "grow", "--allow-oom", str(file))
        (self.out / f"{name}.check").write_text(gate.stdout + gate.stderr)
        return ended, text, json.loads(document), gate.returncode


def python(script, *arguments):
    return [sys.executable, str(HERE / script), *arguments]


def words(document, finding):
    site = next((s for s in document["sites"] if s["id"] == finding["site"]), None)
    return " ".join([finding["title"], finding["evidence"] or "", *finding["advice"],
                     *(f["function"] or "" for f in (site or {}).get("stack") or [])])


def found(document, *ids):
    return [f for f in document["findings"] if f["id"] in ids]


def leak(run, name, end):
    ended, text, document, gate = run.record(f"leak.{name}.{end}", python("leaks.py", name, end))
    wrong = [] if ended == ENDS[end] else [f"ended with {ended}"]
    growing = found(document, "leak.grow")
    place = KEPT.get(name, "keep_" + name)
    if not [f for f in growing if re.search(place, words(document, f))]:
        wrong.append(f"no leak.grow names {place}")
    if gate != 1:
        wrong.append(f"check --leaks grow exits {gate}")
    return wrong, text


def healthy(run, name):
    ended, text, document, gate = run.record(f"healthy.{name}", python("healthy.py", name))
    wrong = [] if ended == 0 else [f"ended with {ended}"]
    wrong += [f"{f['id']}: {f['title']}" for f in found(document, "leak.grow", "usage.creeping")]
    if name == "random_batches" and not found(document, "usage.unstable"):
        wrong.append("no usage.unstable")
    if name != "random_batches" and found(document, "usage.unstable"):
        wrong.append("usage.unstable")
    if gate:
        wrong.append(f"check --leaks grow exits {gate}")
    return wrong, text


def oom(run, name):
    verdict, place, status = OOMS[name]
    ended, text, document, _ = run.record(f"oom.{name}", python("ooms.py", name))
    verdicts = sorted({o["verdict"] for o in document["ooms"]})
    wrong = [] if ended == status else [f"ended with {ended}"]
    if verdicts != [verdict]:
        wrong.append(f"verdicts {verdicts}, not {verdict}")
    said = " ".join(text.splitlines()[:3]) + " ".join(a for o in document["ooms"] for a in o["advice"])
    if place and place not in said:
        wrong.append(f"{place} is not named")
    if name == "batch_search" and len(found(document, "oom")) != 1:
        wrong.append(f"{len(found(document, 'oom'))} findings, not 1")
    return wrong, text


def main(bundle, out, *groups):
    run = Run(pathlib.Path(bundle).resolve(), pathlib.Path(out).resolve())
    run.out.mkdir(parents=True, exist_ok=True)
    groups = groups or ("leaks", "healthy", "ooms")
    together, alone = [], []
    if "leaks" in groups:
        together += [(f"leak.{name}.{end}", leak, name, end) for name in LEAKS for end in ENDS]
    if "healthy" in groups:
        together += [(f"healthy.{name}", healthy, name) for name in HEALTHY]
    if "ooms" in groups:
        alone += [(f"oom.{name}", oom, name) for name in OOMS]
    right, counts = {}, {}

    def judged(name, function, *arguments):
        try:
            return name, *function(run, *arguments)
        except Exception as error:  # its own line
            return name, [f"{type(error).__name__}: {error}"], ""

    def tell(name, wrong, text):
        kind = name.split(".")[0]
        counts[kind] = counts.get(kind, 0) + 1
        right[kind] = right.get(kind, 0) + (not wrong)
        print(f"FAIL {name}: {'; '.join(wrong)}" if wrong else f"ok {name}", *text.splitlines()[:3], sep="\n    ",
              flush=True)

    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS", "8"))) as pool:
        for result in pool.map(lambda case: judged(*case), together):
            tell(*result)
    for case in alone:
        tell(*judged(*case))
    print("verdicts:", ", ".join(f"{kind} {right[kind]} of {counts[kind]} right" for kind in counts))
    return right != counts


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
