#!/usr/bin/env python3
"""Runs the labelled corpus and says how right the verdicts are.

    score.py BUILD [PATTERN...]     the cases whose names match (shell patterns); wrong ones are printed
    score.py BUILD --json FILE      the results for another program, `-` for standard output
    score.py BUILD --floor FILE     exit status 1 if fewer cases of a kind are right than FILE says
    score.py BUILD --write FILE     writes the page docs/evidence/verdicts.md anew, and the floor beside this file
    score.py BUILD --repeat N       each case N times at least

BUILD is a meson build folder (`ninja -C BUILD verdict-programs` builds what is needed). Two cases run at a time;
-j sets another number. cases.py is the table and README.md says what labels mean.
"""
import argparse
import concurrent.futures
import fnmatch
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import cases
import judged

HERE = pathlib.Path(__file__).resolve().parent
KINDS = ("positive", "negative", "oom", "gate")
TIMEOUT_S = 120


class Corpus:
    def __init__(self, build):
        self.build = pathlib.Path(build).resolve()
        self.programs = self.build / "tests" / "verdicts"
        self.sim = self.build / "tests" / "sim"
        self.shim = self.build / "src" / "interpose" / "libgpumemtrace.so"
        self.tool = str(self.build / "tests" / "invariants" / "gpumem-report")
        for path in (self.shim, self.sim / "libcuda.so.1", pathlib.Path(self.tool)):
            if not path.exists():
                sys.exit(f"{path} is missing: ninja -C {build} verdict-programs")

    def command(self, case):
        words = [word.format(programs=self.programs, source=HERE / "programs") for word in case.arguments.split()]
        if case.program.endswith(".py"):
            return [sys.executable, str(HERE / "programs" / case.program), *words]
        return [str(self.programs / f"verdict_{case.program}"), *words]

    def environment(self, case, folder):
        kept = {name: value for name, value in os.environ.items()
                if not name.startswith(("GPUMEMTRACE_", "GPUSIM_", "PYTORCH_", "CUDA_", "LD_"))}
        return {**kept, "LD_LIBRARY_PATH": f"{self.programs}/torch:{self.programs}:{self.sim}",
                "PYTHONPATH": str(HERE / "programs" / "site-packages"), "PYTHONDONTWRITEBYTECODE": "1",
                "PYTHONHASHSEED": "0", "XDG_CACHE_HOME": str(self.build / "cache"),
                "GPUMEMTRACE_OUT": f"{folder}/out.gmt", "GPUMEMTRACE_QUIET": "1", "GPUSIM_MEMORY": "8GiB",
                **dict(word.split("=", 1) for word in case.environment.split())}

    def run(self, case, folder, way="shim"):
        """Runs a case's program; the path of what it recorded and how it ended."""
        environment = self.environment(case, folder)
        path = f"{folder}/out.gmt"
        if way == "shim":
            environment["LD_PRELOAD"] = str(self.shim)
        else:
            path = environment["SNAPSHOT"] = f"{folder}/snapshot.pickle"
        done = subprocess.run(self.command(case), env=environment, cwd=folder, capture_output=True, text=True,
                              timeout=TIMEOUT_S, check=False, errors="replace")
        if done.returncode != case.ended:
            raise ValueError(f"the program ended with {done.returncode}, not {case.ended}: "
                             + " ".join(done.stderr.split())[-300:])
        return path, done.returncode

    def judge(self, case):
        """(right, claims, what is wrong): one run of a case."""
        with tempfile.TemporaryDirectory() as folder:

            def other(arguments):
                return self.run(case._replace(arguments=arguments), tempfile.mkdtemp(dir=folder))[0]

            try:
                if case.way == "file":
                    path, status = str(HERE.parent / case.program), 0
                else:
                    path, status = self.run(case, folder, case.way)
                run = judged.Judged(self.tool, path, status, other)
                # A label's words are this project's own, and the table is code like any other.
                true = bool(eval(case.label, {"__builtins__": {}, **run.vocabulary()}))
                claims = run.claims()
                false = set() if case.kind == "gate" else claims - case.about - case.also
                said = "; ".join(f["id"] + ": " + f["title"] for f in run.document["findings"][:4])
                wrong = [] if true else [said or "nothing is found"]
                wrong += [f"says {', '.join(sorted(false))}: {said}"] if true and false else []
                return not wrong, claims, "".join(wrong)
            except Exception as error:  # noqa: BLE001, every failure is a result
                return False, set(), f"{type(error).__name__}: {error}"

    def result(self, case, repeat):
        runs = [self.judge(case) for _ in range(max(case.repetitions, repeat))]
        right = [run[0] for run in runs]
        wrong = next((run[2] for run in runs if not run[0]), "")
        claims = set().union(*(run[1] for run in runs))
        return {"name": case.name, "kind": case.kind, "about": sorted(case.about), "also": sorted(case.also),
                "right": all(right),
                "varies": len(set(right)) > 1, "runs": len(runs), "claims": sorted(claims), "said": wrong,
                "label": case.label, "why": case.why}


def score(results):
    """Right cases of each kind, and precision and recall of each claim."""
    kinds = {kind: [r for r in results if r["kind"] == kind] for kind in KINDS}
    claims = {}
    for claim in sorted({c for r in results for c in (*r["about"], *r["claims"])}):
        labelled = [r for r in results if claim in r["about"]]
        made = [r for r in results if claim in r["claims"]]
        false = [r for r in made if claim not in r["about"] + r["also"]]
        right = [r for r in labelled if r["right"]]
        claims[claim] = {"labelled": len(labelled), "right": len(right), "false": len(false),
                         "precision": 1 - len(false) / len(made) if made else None,
                         "recall": len(right) / len(labelled) if labelled else None}
    return {"kinds": {kind: {"cases": len(some), "right": sum(r["right"] for r in some)}
                      for kind, some in kinds.items() if some},
            "claims": claims, "varies": [r["name"] for r in results if r["varies"]]}


def percent(share):
    return "-" if share is None else f"{100 * share:.0f} %"


def rows_of(total):
    yield ("kind", "cases", "right", "wrong", "share right")
    for kind, row in total["kinds"].items():
        yield (kind, row["cases"], row["right"], row["cases"] - row["right"], percent(row["right"] / row["cases"]))
    cases_all = sum(row["cases"] for row in total["kinds"].values())
    right = sum(row["right"] for row in total["kinds"].values())
    yield ("all", cases_all, right, cases_all - right, percent(right / cases_all if cases_all else None))


def claims_of(total):
    yield ("what is said", "labelled", "told rightly", "said falsely", "precision", "recall")
    for claim, row in total["claims"].items():
        yield (claim, row["labelled"], row["right"], row["false"], percent(row["precision"]), percent(row["recall"]))


def print_table(rows):
    rows = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("score: " + row[0].ljust(widths[0]) + "".join(cell.rjust(w + 2) for cell, w in zip(row[1:], widths[1:])))


def markdown(rows):
    first, *rest = [[str(cell) for cell in row] for row in rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in (first, ["---"] * len(first), *rest))


def write_page(path, results, total):
    """Fills the generated part of the page: between the two comments."""
    page = pathlib.Path(path)
    text = page.read_text(encoding="utf-8")
    begin, end = "<!-- begin: score.py --write -->\n", "<!-- end: score.py --write -->\n"
    wrong = [r for r in results if not r["right"]]
    body = [markdown(rows_of(total)), "", markdown(claims_of(total)), ""]
    if total["varies"]:
        body += ["Verdicts that varied between repetitions: " + ", ".join(total["varies"]) + ".", ""]
    if wrong:
        body += ["Cases whose verdict is not yet right:", "",
                 markdown([("case", "kind", "the label's reason"), *((r["name"], r["kind"], r["why"]) for r in wrong)])]
    else:
        body += ["No verdict is wrong."]
    head, rest = text.split(begin)
    page.write_text(head + begin + "\n".join(body) + "\n" + end + rest.split(end)[1], encoding="utf-8")
    (HERE / "floor").write_text("".join(f"{kind} {row['right']}\n" for kind, row in total["kinds"].items()),
                                encoding="utf-8")


def above_floor(path, total):
    """Whether as many cases of each kind are right as the file says; prints where not."""
    good = True
    for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
        kind, least = line.split()
        right = total["kinds"].get(kind, {"right": 0})["right"]
        if right < int(least):
            print(f"of kind {kind} {right} cases are right, fewer than the {least} of {path}")
            good = False
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("patterns", nargs="*", metavar="PATTERN")
    parser.add_argument("--json")
    parser.add_argument("--floor")
    parser.add_argument("--write")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("-j", type=int, default=2)
    parser.add_argument("-v", "--verbose", action="store_true", help="right cases too, and what each label asks for")
    options = parser.parse_args()
    corpus = Corpus(options.build)
    chosen = [case for case in cases.ALL
              if not options.patterns or any(fnmatch.fnmatch(case.name, p) for p in options.patterns)]
    if not (corpus.programs / "verdict_buffers").exists():
        print("skipped, for want of a C++ compiler: programs in C++")
        chosen = [case for case in chosen if case.program not in ("buffers", "containers") and case.arguments != "convolutions"]
    if not chosen:
        sys.exit("no such case")
    with concurrent.futures.ThreadPoolExecutor(options.j) as pool:
        results = list(pool.map(lambda case: corpus.result(case, options.repeat), chosen))
    for r in results:
        if options.verbose or not r["right"]:
            verdict = "right" if r["right"] else "wrong, not each time" if r["varies"] else "wrong"
            print(f"{r['name']}: {verdict}" + (f": {r['said']}" if r["said"] else ""))
            if options.verbose:
                print(f"    {r['label']}\n    {r['why']}")
    total = score(results)
    print_table(claims_of(total))
    print_table(rows_of(total))
    if options.json:
        text = json.dumps({"score": total, "cases": results}, indent=1) + "\n"
        if options.json == "-":
            print(text, end="")
        else:
            pathlib.Path(options.json).write_text(text, encoding="utf-8")
    if options.write:
        write_page(options.write, results, total)
    return 0 if not options.floor or above_floor(options.floor, total) else 1


if __name__ == "__main__":
    sys.exit(main())
