#!/usr/bin/env python3
"""Writes docs/transcripts.md: what four people type and what they read, on a screen of 80 columns.

transcripts.py SOURCE BUILD writes it anew. The test `documents` runs its commands and compares what they print, so
a transcript that no longer is what the tools say fails there. A line that tells a time is left out (`...`), because
its length, and so the lines that follow in its paragraph, depend on the machine.
"""
import os
import re
import subprocess
import sys
import tempfile

source, build = (os.path.abspath(path) for path in sys.argv[1:3])
here = os.path.dirname(os.path.abspath(__file__))
DURATION = re.compile(r"\d (us|ms|s|min)\b")
VARIES = re.compile(r"^((?:Seen: \S+|Peak: .*) %).*|\s*\S*….*")  # ends of lines that are cut to fit behind a time
MOST_LINES = 45  # of a command's output

JOURNEYS = [
    ("A Python engineer: the memory of a training loop rises", [
        "gpumemtrace run -q -o first.gmt train.py 50", "gpumemtrace leaks first.gmt"]),
    ("A C++ engineer: a gate in CI", [
        'gpumem-report run -q -o app.gmt --check "--leaks exit --fail-on-errors" -- ./app', "echo $?"]),
    ("A reviewer: what a change broke", [
        "gpumem-report check -q --leaks grow --github-annotations - --markdown summary.markdown train.gmt", "echo $?",
        "cat summary.markdown"]),
    ("Somebody with an out-of-memory error", [
        "GPUSIM_MEMORY=1GiB gpumemtrace run -q -o oom.gmt train.py 900 2> /dev/null", "echo $?",
        "gpumem-report oom --top 1 oom.gmt"]),
]


def paragraphs(lines):
    """The lines with `...` in the place of what a time makes longer or shorter."""
    shown, inside = [], None
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if inside is not None and (not line.strip() or indent < inside or line.lstrip().startswith(("- ", "|"))):
            inside = None
        if inside is None and DURATION.search(line) and not re.match(r"(Seen|Peak|Next): ", line):
            inside = indent
        text = VARIES.sub(lambda cut: (cut[1] or "") + "...", line) if inside is None else "..."
        if text != "..." or shown[-1:] != ["..."]:
            shown.append(text)
    return shown


def transcript(commands, folder, environment):
    end = "---- end ----"
    script = "".join(f"{command}\nlast=$?; echo; echo '{end}'; (exit $last)\n" for command in commands)
    said = subprocess.run(["bash", "-c", script], cwd=folder, env=environment, text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False).stdout
    lines = []
    for command, printed in zip(commands, said.split(end + "\n")):
        printed = re.sub(r"\[[0-9a-f]{12}\]", "[...]", printed.replace(folder, "/home/me"))
        output = paragraphs(printed.rstrip("\n").splitlines())
        wide = [line for line in output if len(line) > 80 and not line.startswith(("::", "<", "|"))]
        assert not wide, f"{command}: over 80 columns: {wide}"
        lines += ["$ " + command, *output[:MOST_LINES], *(["..."] if len(output) > MOST_LINES else [])]
    return lines


def main():
    with tempfile.TemporaryDirectory() as directory:
        folder = os.path.join(directory, "me")
        environment = dict(os.environ) | {"LC_ALL": "C.UTF-8", "COLUMNS": "80", "GPUMEMTRACE_QUIET": "1"}
        for name in ("DEBUGINFOD_URLS", "LD_PRELOAD", "PYTHONPATH"):
            environment.pop(name, None)
        subprocess.run(["bash", os.path.join(here, "prepare.sh"), source, build, folder], env=environment, check=True)
        tools, sim = os.path.join(folder, ".tools"), os.path.join(build, "tests", "sim")
        environment |= {"PATH": os.path.join(tools, "bin") + ":" + os.environ["PATH"],
                        "LD_LIBRARY_PATH": os.path.join(tools, "lib") + ":" + sim,
                        "PYTHONPATH": os.path.join(tools, "python")}
        text = ["# Transcripts", "",
                "Four people at a terminal of 80 columns, on the simulated GPU. `tests/docs/transcripts.py` writes this page, and the",
                "tests run its commands and compare. `...` stands for lines whose length depends on the machine's speed."]
        for title, commands in JOURNEYS:
            block = transcript(["export COLUMNS=80", *commands], folder, environment)
            text += ["", "## " + title, "", "```console", *block, "```"]
        with open(os.path.join(source, "docs", "transcripts.md"), "w", encoding="utf-8") as page:
            page.write("\n".join(text) + "\n")


main()
