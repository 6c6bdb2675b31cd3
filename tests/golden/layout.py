#!/usr/bin/env python3
"""The layout of text at several widths, and of directories: no line is too long, the answer comes first.

layout.py TOOL MAKE_FILES MAKE_FLEET prints TAP.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

tool, make_files, make_fleet = (os.path.abspath(path) for path in sys.argv[1:4])
number = failures = 0
COMMANDS = ["summary leaks.gmt", "summary torch.gmt", "summary killed.gmt", "summary over.gmt", "leaks --all leaks.gmt",
            "sites leaks.gmt", "oom torch.gmt", "timeline timeline.gmt", "diff before.gmt leaks.gmt",
            "check leaks.gmt killed.gmt", "check --baseline before.gmt leaks.gmt", "summary rank0.gmt rank1.gmt",
            "plan --batch 8 torch.gmt", "plan --params 8B --precision 4bit --trainable 1%"]


def test(name, body):
    global number, failures
    number += 1
    try:
        body()
        print(f"ok {number} - {name}")
    except Exception as error:  # noqa: BLE001, every failure is a result
        failures += 1
        print(f"not ok {number} - {name}\n# " + "\n# ".join(f"{type(error).__name__}: {error}".splitlines()))


def said(command, columns=None, *more):
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    if columns:
        environment["COLUMNS"] = str(columns)
    done = subprocess.run([tool, *command.split(), *more], capture_output=True, text=True, env=environment, check=False)
    return done.stdout.splitlines()


def fits(columns):
    for command in COMMANDS:
        for line in said(command, columns):
            assert len(line) <= (columns or 100), f"{command} at {columns}: {len(line)} columns: {line}"
            assert line == line.rstrip(), f"{command} at {columns}: blanks at the end: {line!r}"


def three_lines():
    for columns in 80, 120, 200:
        for name in "leaks.gmt", "torch.gmt", "killed.gmt", "over.gmt":
            lines = said("summary -q " + name, columns)
            assert [line[:6] for line in lines] == ["Seen: ", "Peak: ", "Next: "], lines
    narrow, wide = (said("summary -q torch.gmt", columns)[2] for columns in (80, 200))
    assert narrow == "Next: out of memory (fragmented) at Model.forward (model.py:20); see oom", narrow
    assert wide == ("Next: out of memory (fragmented): cudaMalloc asked for 600.0 MiB at Model.forward (model.py:20); "
                    "see gpumem-report oom torch.gmt"), wide


def tables_lose_nothing():
    """What a narrow terminal shows of the table of usage, in several parts, is what a wide one shows."""
    def cells(columns):
        lines = said("summary torch.gmt", columns)
        begin = lines.index("Usage") + 1
        found = {}
        for line in lines[begin:lines.index("", begin)]:
            words = re.split(r"  +", line.strip())
            if words[0] == "where":
                titles = words[2:]
            else:
                found.setdefault(words[1], {}).update(zip(titles, words[2:]))
        return found
    assert cells(80) == cells(200) and len(cells(200)["PyTorch allocated"]) == 8, cells(80)


def top_bounds_lists():
    lines = said("summary --top 1 leaks.gmt")
    rows = [line for line in lines if line.startswith("  host ")]
    assert not rows and "  2 more (--top)" in lines, lines
    assert sum(line.startswith(("  error ", "  warning ", "  note ")) for line in lines) == 1, lines
    lines = said("leaks --all --top 1 leaks.gmt")
    assert any("more site" in line and "(--top)" in line for line in lines), lines


def whole_first():
    lines = said("summary", None, "rank1.gmt", "rank0.gmt")
    order = [lines.index(text) for text in ("All 2 processes", "Findings", "Processes", "=== rank0.gmt", "=== rank1.gmt")]
    assert order == sorted(order), lines


def large_directory():
    os.mkdir("many")
    for copy in range(60):
        shutil.copy("clean.gmt", f"many/{copy}.gmt")
    shutil.copy("torch.gmt", "many/a.gmt")
    shutil.copy("killed.gmt", "many/b.gmt")
    lines = said("summary --top 5 many")
    assert lines[0] == "All 62 processes", lines[0]
    worst = lines.index("Worst of 62 processes")
    assert lines.index("Findings") < worst and "killed" in lines[worst + 3], lines[worst:worst + 4]
    assert [line for line in lines if line.startswith("=== ")][:3] == [
        "=== many/a.gmt", "=== many/b.gmt", "=== many/0.gmt"], lines
    assert lines[-1] == "=== 57 more files (--top, or name one of them)", lines[-1]


def jobs_apart():
    subprocess.run([make_fleet, "fleet"], check=True, stdout=subprocess.DEVNULL)
    lines = said("summary fleet")
    assert lines[0] == "4 jobs, 8 processes", lines[0]
    jobs = [line for line in lines if line.startswith("Job ")]
    assert len(jobs) == 4 and jobs[0] == "Job 13: 2 processes", jobs
    assert not any("imbalance" in line for line in lines)


with tempfile.TemporaryDirectory() as work:
    os.chdir(work)
    os.mkdir("fleet")
    subprocess.run([make_files, "."], check=True)
    for columns in 80, 120, 200, None:
        test(f"no line is longer than {columns or 'a piped one'}", lambda columns=columns: fits(columns))
    test("the first three lines are three lines", three_lines)
    test("a table in parts loses nothing", tables_lose_nothing)
    test("--top bounds lists", top_bounds_lists)
    test("of several files the whole comes first", whole_first)
    test("of many files the worst come first", large_directory)
    test("jobs are kept apart", jobs_apart)
print(f"1..{number}")
sys.exit(failures > 0)
