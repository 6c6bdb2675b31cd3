"""Predicted and measured: grid.py BUNDLE OUT [--jobs N] [--only NAME,...] [--predict]

Each program of programs.py is recorded once, half of them under PyTorch's default and half under
expandable_segments:True, as a snapshot and by the shim. From both `gpumem-report whatif` predicts every
setting, and then every setting is run. OUT gets `results.tsv`, a line for each pair, and the recordings.
--predict predicts again from the recordings and measurements that are in OUT, without a GPU.
"""
import argparse
import concurrent.futures
import json
import os
import subprocess
import sys
import time

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


def measure(words):
    """Records and runs everything; {name: {"recorded": statistics, "measured": {setting: statistics}}}"""
    found = {name: {"recorded": None, "measured": {}} for name in words.names}
    with concurrent.futures.ThreadPoolExecutor(words.jobs) as pool:
        recordings = {pool.submit(record, words, name): name for name in words.names}
        runs = {pool.submit(run, words, name, setting, "--cap"): (name, setting)
                for name in words.names for setting in SETTINGS}
        for task in concurrent.futures.as_completed(recordings | runs):
            if task in recordings:
                found[recordings[task]]["recorded"] = task.result()
            else:
                name, setting = runs[task]
                found[name]["measured"][setting] = task.result()
            with open(os.path.join(words.out, "measured.json"), "w", encoding="utf-8") as file:
                json.dump(found, file)
    return found


def verdict(measured, row):
    """equal: all figures; within: the peak lies in the interval; else what differs. A row that is called exact
    has no interval."""
    if all(row[key] == measured[key] for key in KEYS):
        return "equal"
    if row["low"] <= measured["reserved_peak"] <= row["high"] and row["ooms"] == measured["ooms"]:
        return "within"
    return "differs:" + ",".join(key for key in KEYS if row[key] != measured[key])


def compare(words, found):
    """Writes results.tsv; counts of verdicts by source."""
    counts = {"pickle": {}, "gmt": {}}
    with open(os.path.join(words.out, "results.tsv"), "w", encoding="utf-8") as file:
        print("program", "recorded_under", "setting", "source", "verdict", "exact", "reproduced",
              "measured_reserved", "predicted_reserved", "low", "high", "measured_retries",
              "predicted_retries", "measured_ooms", "predicted_ooms", "why", sep="\t", file=file)
        for name in words.names:
            facts = found[name]["recorded"]
            if not facts:
                continue
            for source in counts:
                rows = predict(words, os.path.join(words.out, f"{name}.{source}"), facts)
                for setting, row in rows.items():
                    measured = found[name]["measured"].get(setting)
                    if not measured:
                        continue
                    said = verdict(measured, row)
                    kind = (said.split(":")[0], row["exact"])
                    counts[source][kind] = counts[source].get(kind, 0) + 1
                    print(name, recorded_setting(name), setting, source, said, row["exact"],
                          row["reproduced"], measured["reserved_peak"], row["reserved_peak"], row["low"],
                          row["high"], measured["retries"], row["retries"], measured["ooms"], row["ooms"],
                          row["why"] or "", sep="\t", file=file)
    return counts


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    words.add_argument("bundle")
    words.add_argument("out")
    words.add_argument("--jobs", type=int, default=10)
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
    counts = compare(words, found)
    for source, kinds in counts.items():
        pairs = sum(kinds.values())
        equal = sum(n for (said, _), n in kinds.items() if said == "equal")
        wrong = kinds.get(("differs", True), 0) + kinds.get(("within", True), 0)
        print(f"{'ok' if pairs and not wrong else 'FAIL'} grid {source}: {pairs} pairs, {equal} equal, "
              f"{sum(n for (said, _), n in kinds.items() if said == 'within')} within the interval, "
              f"{sum(n for (said, _), n in kinds.items() if said == 'differs')} differ, "
              f"{wrong} of those called exact are not")
    print(f"{time.monotonic() - start:.0f} s in all")


if __name__ == "__main__":
    main()
