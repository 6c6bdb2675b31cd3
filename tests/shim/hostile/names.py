#!/usr/bin/env python3
"""names.py REPORT FILE FOLDER: every text that the report makes of FILE, whose names are hostile.

A name stays on its line and sends nothing to the terminal, no line is a command of a CI host, a csv cell is no
formula, and a line of collapsed stacks ends with a number. JSON has the names as the program gave them."""
import csv
import io
import json
import re
import subprocess
import sys
import xml.dom.minidom

REPORT, FILE, FOLDER = sys.argv[1:]
VIEWS = [
    "summary", "leaks", "sites", "sites --full --top 100", "timeline", "fragmentation", "oom", "top --once",
    "check --leaks exit", "check --leaks exit --junit FOLDER/junit", "check --per-mark",
    "check --leaks exit --per-mark --markdown FOLDER/markdown --github-annotations FOLDER/github", "leaks --since step", "diff FILE",
    "sites --sort count --color always", "leaks --color always", "check --leaks exit --color always",
]
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
HARMFUL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
COMMAND = re.compile(r"^\s*(::|Next: forged)|##\[|##vso\[", re.M)
wrong = []


def judge(what, text):
    for pattern in (HARMFUL, COMMAND):
        found = pattern.search(text)
        if found:
            wrong.append(f"{what}: {text[max(0, found.start() - 40):found.end() + 20]!r}")


def run(*args):
    done = subprocess.run([REPORT, *args], capture_output=True)
    if done.returncode not in (0, 1, 2, 3):
        wrong.append(f"{args}: ends with {done.returncode}")
    judge("errors of " + args[0], COLOUR.sub("", done.stderr.decode("utf-8", "strict")))
    return done.stdout.decode("utf-8", "strict")


for view in VIEWS:
    words = [word.replace("FOLDER", FOLDER).replace("FILE", FILE) for word in view.split()]
    said = run(*words, FILE)
    judge(view, COLOUR.sub("", said) if "always" in words else said)
with open(f"{FOLDER}/junit", encoding="utf-8") as junit:
    text = junit.read()
judge("junit", text)
xml.dom.minidom.parseString(text)
with open(f"{FOLDER}/markdown", encoding="utf-8") as markdown:
    judge("markdown", markdown.read())
with open(f"{FOLDER}/github", encoding="utf-8") as github:
    for line in github.read().splitlines():
        judge("GitHub's annotations", line.removeprefix("::error "))
collapsed = run("export", "--format", "collapsed", FILE)
judge("collapsed", collapsed)
wrong += [f"collapsed: {line!r}" for line in collapsed.splitlines() if not re.search(r" \d+$", line)]
table = run("export", "--format", "csv", FILE)
judge("csv", table.replace("\r\n", "\n"))
rows = list(csv.reader(io.StringIO(table)))
wrong += [f"csv: {cell!r}" for row in rows for cell in row if cell[:1] in tuple("=+-@\t\r") and not re.fullmatch(r"-?[0-9.]+", cell)]
if len({len(row) for row in rows}) != 1:
    wrong.append("csv: rows of different lengths")
judge("openmetrics", run("export", "--format", "openmetrics", FILE))
document = json.loads(run("summary", "--json", FILE))
marks = [mark["name"] for mark in document["marks"]]
for name in ("step\n::error file=app.py,line=1::forged", "\x1b]0;title\x07", "\u200fright", "=1+1", "plain ä € 漢 🚀"):
    if name not in marks:
        wrong.append(f"JSON does not have {name!r} as it is")
plain = run("timeline", "--top", "100", FILE)
if "plain ä € 漢 🚀" not in plain or "step\\n\\" not in plain and "step\\n::" not in plain:
    wrong.append("a harmless name is not shown as it is")
print("\n".join(wrong))
sys.exit(bool(wrong))
