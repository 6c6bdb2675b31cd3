"""Predicted and measured: grid.py BUNDLE OUT [--jobs N] [--only NAME,...] [--predict]

Each program of programs.py is recorded once, half of them under PyTorch's default and half under
expandable_segments:True, as a snapshot and by the shim. From both `gpumem-report whatif` predicts every
setting, and then every setting is run. A pair whose prediction from the snapshot is not exact, or is not what
was measured, is run twice more, the last time with a snapshot of its own: whether the runs agree shows what
depends on time or on addresses, and why.py tells why a prediction missed. OUT gets `results.tsv`, a line for
each pair, and the recordings. --predict predicts again from the recordings and measurements that are in OUT,
without a GPU.
"""
import argparse
import concurrent.futures
import json
import os
import subprocess
import sys
import time

import why

HERE = os.path.dirname(os.path.abspath(__file__))
MIB = 1 << 20
SETTINGS = (
    "default",
    "expandable_segments:True",
    "max_split_size_mb:20",
    "max_split_size_mb:64",
    "max_split_size_mb:256",
    "max_split_size_mb:64,max_non_split_rounding_mb:128",
    "roundup_power2_divisions:4",
    "roundup_power2_divisions:16",
    "roundup_power2_divisions:[16:1,64:2,256:4,>:8]",
    "garbage_collection_threshold:0.6",
    "garbage_collection_threshold:0.8,max_split_size_mb:128",
    "expandable_segments:True,roundup_power2_divisions:8",
)
KEYS = ("reserved_peak", "retries", "ooms")
AGAIN = 2


def names():
    """The programs, without importing PyTorch."""
    with open(os.path.join(HERE, "programs.py"), encoding="utf-8") as file:
        lines = file.read().splitlines()
    found, marked = [], False
    for line in lines:
        marked = marked or line.startswith("@program")
        if marked and line.startswith("def "):
            found.append(line[4:line.index("(")])
            marked = False
    return found


def recorded_setting(name):
    return SETTINGS[names().index(name) % 2]


def run(words, name, setting, *more, **environment):
    """One process of a program; its statistics, or None after a line."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTORCH_")}
    env.update(environment, PYTHONDONTWRITEBYTECODE="1")
    if setting != "default":
        env["PYTORCH_CUDA_ALLOC_CONF"] = setting
    try:
        done = subprocess.run([sys.executable, os.path.join(HERE, "programs.py"), name, *more], env=env,
                              capture_output=True, text=True, timeout=120, check=True)
        return json.loads(done.stdout.strip().splitlines()[-1])
    except (subprocess.SubprocessError, ValueError, IndexError) as error:
        said = (getattr(error, "stderr", None) or "").strip().splitlines()
        print(f"FAIL {name} under {setting}: {said[-1] if said else error}", flush=True)
        return None


def record(words, name):
    path = os.path.join(words.out, name)
    return run(words, name, recorded_setting(name), "--snapshot", path + ".pickle",
               LD_PRELOAD=os.path.join(words.bundle, "libgpumemtrace.so"), GPUMEMTRACE_EVENTS="all",
               GPUMEMTRACE_OUT=path + ".gmt", GPUMEMTRACE_QUIET="1")


def predict(words, path, facts):
    """The rows of whatif by setting; an empty dict after a line."""
    command = [os.path.join(words.bundle, "gpumem-report"), "whatif", "--json", "--torch", facts["torch"],
               "--conf", ";".join(SETTINGS), path]
    if facts["cap_mib"]:
        command += ["--capacity", str(facts["total"]), "--fraction",
                    repr(facts["cap_mib"] * MIB / facts["total"])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        print(f"FAIL {path}: {done.stderr.strip()}", flush=True)
        return {}
    document = json.loads(done.stdout)
    return {row["conf"]: {"reserved_peak": row["reserved_peak_bytes"], "retries": row["retries"],
                          "ooms": row["ooms"], "low": row["reserved_peak_low_bytes"],
                          "high": row["reserved_peak_high_bytes"], "exact": row["exact"], "why": row["why"],
                          "reproduced": document["whatif_run"]["reproduced"]}
            for row in document["whatif"]}


def save(words, found):
    with open(os.path.join(words.out, "measured.json"), "w", encoding="utf-8") as file:
        json.dump(found, file)


def measure(words):
    """Records and runs everything once; {name: {"recorded": statistics, "measured": {setting: [statistics]}}}"""
    found = {name: {"recorded": None, "measured": {s: [] for s in SETTINGS}, "why": {}} for name in words.names}
    with concurrent.futures.ThreadPoolExecutor(words.jobs) as pool:
        recordings = {pool.submit(record, words, name): name for name in words.names}
        runs = {pool.submit(run, words, name, setting, "--cap"): (name, setting)
                for name in words.names for setting in SETTINGS}
        for task in concurrent.futures.as_completed(recordings | runs):
            if task in recordings:
                found[recordings[task]]["recorded"] = task.result()
            elif task.result():
                name, setting = runs[task]
                found[name]["measured"][setting].append(task.result())
            save(words, found)
    return found


def repeat(words, found):
    """Runs the pairs again of which one run does not tell enough."""
    tasks = []
    with concurrent.futures.ThreadPoolExecutor(words.jobs) as pool:
        for name, (facts, rows) in predictions(words, found, "pickle").items():
            for number, (setting, row) in enumerate(rows.items()):
                runs = found[name]["measured"][setting]
                if not runs or verdict(runs, row) == "equal" and row["exact"]:
                    continue
                path = os.path.join(words.out, f"again-{name}-{number}.pickle")
                for again in range(AGAIN):
                    last = again == AGAIN - 1
                    more = ("--cap", "--snapshot", path) if last else ("--cap",)
                    tasks.append((name, setting, path if last else None,
                                  pool.submit(run, words, name, setting, *more)))
        for name, setting, path, task in tasks:
            measured = task.result()
            if measured:
                found[name]["measured"][setting].append(measured)
            if measured and path:
                found[name]["why"][setting] = why.why(words.bundle, os.path.join(words.out, f"{name}.pickle"),
                                                      path, measured, setting)
                if found[name]["why"][setting] != "model":
                    os.unlink(path)
            save(words, found)


def predictions(words, found, source):
    """{name: (statistics of the recorded run, rows by setting)}"""
    return {name: (found[name]["recorded"],
                   predict(words, os.path.join(words.out, f"{name}.{source}"), found[name]["recorded"]))
            for name in words.names if found[name]["recorded"]}


def agree(runs):
    return all(run[key] == runs[0][key] for run in runs for key in KEYS)


def verdict(runs, row):
    """equal: all figures of all runs; within: each peak lies in the interval; else what differs. A row that is
    called exact has no interval."""
    if all(row[key] == run[key] for run in runs for key in KEYS):
        return "equal"
    if all(row["low"] <= run["reserved_peak"] <= row["high"] and row["ooms"] == run["ooms"] for run in runs):
        return "within"
    return "differs:" + ",".join(key for key in KEYS if any(row[key] != run[key] for run in runs))


def listed(runs, key):
    return ",".join(str(run[key]) for run in runs)


def compare(words, found):
    """Writes results.tsv; a list of (verdict, exact, whether the runs agree, outcome right) by source."""
    pairs = {"pickle": [], "gmt": []}
    with open(os.path.join(words.out, "results.tsv"), "w", encoding="utf-8") as file:
        print("program", "recorded_under", "setting", "source", "verdict", "exact", "reproduced", "agree",
              "measured_reserved", "predicted_reserved", "low", "high", "measured_retries",
              "predicted_retries", "measured_ooms", "predicted_ooms", "missed_by", "why", sep="\t", file=file)
        for source, kept in pairs.items():
            for name, (_, rows) in predictions(words, found, source).items():
                for setting, row in rows.items():
                    runs = found[name]["measured"][setting]
                    if not runs:
                        continue
                    said = verdict(runs, row)
                    kept.append((said.split(":")[0], row["exact"], agree(runs),
                                 all(row[key] == run[key] for run in runs for key in KEYS[1:])))
                    print(name, recorded_setting(name), setting, source, said, row["exact"],
                          row["reproduced"], agree(runs), listed(runs, "reserved_peak"), row["reserved_peak"],
                          row["low"], row["high"], listed(runs, "retries"), row["retries"],
                          listed(runs, "ooms"), row["ooms"],
                          found[name]["why"].get(setting, "") if said != "equal" else "",
                          row["why"] or "", sep="\t", file=file)
    return pairs


def sums(source, pairs):
    """A line: how many predictions are right, of all pairs and of those whose runs agree."""
    settled = [p for p in pairs if p[2]]
    equal = sum(p[0] == "equal" for p in settled)
    wrong = sum(p[1] and p[0] != "equal" for p in pairs)
    good = pairs and not wrong and equal >= 0.95 * len(settled)
    return (f"{'ok' if good else 'FAIL'} grid {source}: {len(pairs)} pairs, in {len(settled)} of them all runs "
            f"agree: {equal} equal ({100 * equal / max(len(settled), 1):.1f} %); of all "
            f"{sum(p[0] == 'equal' for p in pairs)} equal, {sum(p[0] == 'within' for p in pairs)} within the "
            f"interval, {sum(p[0] == 'differs' for p in pairs)} differ; retries and out-of-memory errors right "
            f"in {sum(p[3] for p in pairs)}; {wrong} of those called exact are not")


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    words.add_argument("bundle")
    words.add_argument("out")
    words.add_argument("--jobs", type=int, default=14)
    words.add_argument("--only")
    words.add_argument("--predict", action="store_true")
    words = words.parse_args()
    words.bundle = os.path.abspath(words.bundle)
    words.names = [n for n in names() if not words.only or n in words.only.split(",")]
    os.makedirs(words.out, exist_ok=True)
    start = time.monotonic()
    if words.predict:
        with open(os.path.join(words.out, "measured.json"), encoding="utf-8") as file:
            found = json.load(file)
    else:
        found = measure(words)
        print(f"measured after {time.monotonic() - start:.0f} s", flush=True)
        repeat(words, found)
        print(f"repeated after {time.monotonic() - start:.0f} s", flush=True)
    for source, pairs in compare(words, found).items():
        print(sums(source, pairs))
    print(f"{time.monotonic() - start:.0f} s in all")


if __name__ == "__main__":
    main()
