#!/usr/bin/env python3
"""contradictions.py CHECKED PLAIN MAKE_FILES: that check.py finds what it is to find.

Documents of made files hold together; each change below contradicts another figure of its document and is
found. CHECKED, which all tests run, ends with status 98 if the tool writes such a document. Prints TAP."""
import copy
import json
import os
import subprocess
import sys
import tempfile

import check

checked, plain, make_files = map(os.path.realpath, sys.argv[1:4])

# File, what is changed to what, and what is said of it. A value that is callable changes the old one.
more = lambda figure: figure + 1
CHANGES = [
    ("leaks", ["usage", 0, "current_bytes"], more, "is not"),
    ("leaks", ["usage", 0, "peak_bytes"], lambda peak: peak // 2, "current_bytes"),
    ("leaks", ["usage", 0, "frees"], more, "count"),
    ("leaks", ["totals", 0, "current_bytes"], more, "the parts add up to"),
    ("leaks", ["totals", 0, "current_count"], more, "the parts add up to"),
    ("leaks", ["totals", 0, "peak_bytes"], more, "sites' bytes_at_peak"),
    ("leaks", ["totals", 0, "peak_at_s"], 7, "after the end"),
    ("leaks", ["totals", 0, "utilization_percent"], 99, "utilization_percent"),
    ("leaks", ["totals", 0, "device"], 3, "devices[]"),
    ("leaks", ["sites", 0, "live_bytes"], more, "sites' live_bytes"),
    ("leaks", ["sites", 0, "live_count"], more, "count"),
    ("leaks", ["sites", 0, "peak_bytes"], 1, "live_bytes"),
    ("leaks", ["sites", 0, "bytes_at_peak"], more, "bytes_at_peak"),
    ("leaks", ["sites", 0, "allocated_bytes"], more, "sites' allocated_bytes"),
    ("leaks", ["sites", 0, "first_s"], 0.995, "first_s"),
    ("leaks", ["sites", 0, "last_s"], 2, "after the end"),
    ("leaks", ["sites", 0, "verdict"], "released", "released with"),
    ("leaks", ["sites", 0, "windows", 0, "max_bytes"], 1, "last_bytes"),
    ("leaks", ["sites", 0, "windows", 0, "last_bytes"], 1, "the last window's end"),
    ("leaks", ["leaks", "exit_bytes"], more, "what is live"),
    ("leaks", ["leaks", "exit_count"], 1, "what is live"),
    ("leaks", ["leaks", "cached_bytes"], 5, "cached sites"),
    ("leaks", ["leaks", "grow"], ["0123456789ab"], "there is no site"),
    ("leaks", ["categories", 1, "current_bytes"], more, "categories"),
    ("leaks", ["categories", 1, "bytes_at_peak"], more, "categories"),
    ("leaks", ["phases", 0, "peak_bytes"], 1, "retained_bytes"),
    ("leaks", ["findings", 0, "site"], "0123456789ab", "there is no site"),
    ("torch", ["torch", 0, "allocated_bytes"], more, "is not"),
    ("torch", ["torch", 0, "allocated_peak_bytes"], more, "sites' bytes_at_peak"),
    ("torch", ["torch", 0, "reserved_peak_bytes"], 1, "reserved_bytes"),
    ("torch", ["torch", 0, "largest_free_bytes"], more, "fragmentation's"),
    ("torch", ["torch", 0, "inactive_split_bytes"], 1 << 40, "reserved - allocated"),
    ("torch", ["torch", 0, "ooms"], 5, "ooms"),
    ("torch", ["torch", 0, "frees"], more, "sites' frees"),
    ("torch", ["fragmentation", 0, "largest_free_bytes"], 1 << 40, "reserved - used"),
    ("torch", ["fragmentation", 0, "used_bytes"], 1 << 40, "reserved"),
    ("torch", ["fragmentation", 0, "free_bytes"], more, "free_bytes"),
    ("torch", ["fragmentation", 0, "percent"], 1, "percent"),
    ("torch", ["fragmentation", 0, "external_percent"], 1, "external_percent"),
    ("torch", ["fragmentation", 0, "pinned_by", 0, "hole_bytes"], 1 << 40, "holes pinned by"),
    ("torch", ["ooms", 0, "holes", 0, "largest_free_bytes"], 1 << 40, "reserved - used"),
    ("torch", ["ooms", 0, "fragmentation", "used_bytes"], more, "fragmentation.used_bytes"),
    ("torch", ["ooms", 0, "time_s"], 9, "after the end"),
    ("torch", ["ooms", 0, "free_bytes"], 2 << 30, "tracked + free"),
    ("torch", ["ooms", 0, "top_sites", 0, "bytes"], 1 << 40, "its peak"),
    ("torch", ["retries", "exhausted"], 3, "exhausted"),
    ("torch", ["retries", "recovered"], 2, "recovered"),
    ("torch", ["ledger", 0, "unexplained_bytes"], more, "rows and unexplained"),
    ("torch", ["ledger", 0, "rows", 0, "bytes"], more, "rows and unexplained"),
    ("timeline", ["timeline", 0, "last", 3], 1 << 40, "is not between"),
    ("timeline", ["timeline", 0, "max"], [1], "differ in length"),
    ("timeline", ["marks", 0, "time_s"], 5, "after the end"),
]


def document(name):
    text = subprocess.check_output([plain, "summary", "--json", f"{name}.gmt"])
    return json.loads(text)


def with_change(original, path, value):
    changed = copy.deepcopy(original)
    place = changed
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value(place[path[-1]]) if callable(value) else value
    return changed


def main():
    number = failed = 0

    def result(good, name, why):
        nonlocal number, failed
        number, failed = number + 1, failed + (not good)
        print(f"{'ok' if good else 'not ok'} {number} - {name}" + ("" if good else f"\n# {why}"))

    originals = {name: document(name) for name in sorted({change[0] for change in CHANGES})}
    for name, original in originals.items():
        found = check.Checker(original).check()
        result(not found, f"{name} holds together", found)
    for name, path, value, said in CHANGES:
        found = check.Checker(with_change(originals[name], path, value)).check()
        result(any(said in line for line in found), f"{name}: {'.'.join(map(str, path))}", found)
    # An older file of the same run adds up in another way: its sums are not compared.
    cut = with_change(originals["leaks"], ["file", "complete"], False)
    found = check.Checker(with_change(cut, ["totals", 0, "current_count"], more)).check()
    result(not found, "what a damaged file lacks is no contradiction", found)
    words = "summary", "--json", "--top", "2"
    bounded = json.loads(subprocess.check_output([plain, *words, "leaks.gmt"]))
    found = check.Checker(bounded, words).check()
    result(not found, "a bounded document holds together", found)
    for path, value, said in (["findings"], originals["leaks"]["findings"], "with --top 2"), \
            (["sites"], bounded["sites"][:1], "there is no site"), (["sites", 0, "windows"], [{}] * 3, "with --top 2"), \
            (["sites"], originals["leaks"]["sites"] + [dict(bounded["sites"][0], id=name) for name in "abc"], "named"):
        checker = check.Checker(with_change(bounded, path, value), words)
        checker.lists()
        result(any(said in line for line in checker.broken), f"bounded: {'.'.join(map(str, path))}", checker.broken)
    with open("broken", "w", encoding="utf-8") as file:
        json.dump(with_change(originals["leaks"], ["usage", 0, "frees"], more), file)
    with open("tool", "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\ncat broken\n")
    os.chmod("tool", 0o755)
    for wanted, line in (98, "summary --json x"), (0, "summary x"), (98, "export --format=json x"):
        words = line.split()
        done = subprocess.run([checked, *words], env=os.environ | {"TESTED_REPORT": os.path.realpath("tool")},
                              capture_output=True, text=True, check=False)
        good = done.returncode == wanted and done.stdout and ("contradicts" in done.stderr) == (wanted == 98)
        result(good, f"{line} ends with {wanted}", (done.returncode, done.stderr))
    print(f"1..{number}")
    return 1 if failed else 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        subprocess.check_call([make_files, folder])
        sys.exit(main())
