"""Runs the queries of docs/fleet.md on a week of simulated jobs and holds the answers against make_fleet.c.

fleet.py TOOL MAKE_FLEET FLEET_MD WORK prints TAP. DuckDB comes by npm into WORK (kept from run to run).
"""

import csv
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile

DUCKDB = "@duckdb/node-api@1.5.6-r.1"
tool, make_fleet, fleet_md, npm_work = (os.path.abspath(path) for path in sys.argv[1:5])
number = failures = 0
with open(fleet_md, encoding="utf-8") as opened:
    blocks = re.findall(r"```sql( duckdb)?\n(.*?)```", opened.read(), re.DOTALL)
queries = [text for duckdb, text in blocks if not duckdb]
duckdb_queries = [text for duckdb, text in blocks if duckdb]

# place, runs, jobs, MiB; of the runs that ended well within a week
LEAKS = [("load (model.py:5)", 8, 4, 2 * (3 * 64 + 32)), ("remember (train.py:22)", 6, 3, 2 * (10 + 20 + 40))]
PEAKS = [("aaaa", 200), ("bbbb", 210), ("cccc", 130)]


def test(name, body):
    global number, failures
    number += 1
    try:
        said = body()
        print(f"ok {number} - {name}" + (f" # SKIP {said}" if said else ""))
    except Exception as error:  # noqa: BLE001, every failure is a result
        failures += 1
        text = " ".join(f"{type(error).__name__}: {error}".split())
        print(f"not ok {number} - {name}\n# {text[:2000]}")


def export(form, *arguments, status=0):
    done = subprocess.run([tool, "export", "--format", form, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == status, f"exit status {done.returncode}: {done.stderr}"
    return done.stdout


def ask(query):
    with sqlite3.connect("week.db") as database:
        return database.execute(query).fetchall()


def counts():
    return {name: ask(f"SELECT count(*) FROM {name}")[0][0]
            for name, in ask("SELECT name FROM sqlite_master WHERE type = 'table'")}


def appended():
    export("sqlite", "-o", "week.db", "11", "12")
    before = counts()
    assert before["runs"] == 4, before
    export("sqlite", "-o", "week.db", "11", "12")
    assert counts() == before
    export("sqlite", "-o", "week.db", ".")
    assert counts()["runs"] == 8
    export("sqlite", "-o", "week.db", "11/rank0.gmt")
    assert counts()["runs"] == 8
    assert ask("SELECT DISTINCT job, revision FROM runs WHERE program = 'serve'") == [("14", "dddd")]


def older_database():
    export("sqlite", "-o", "old.db", "11")
    with sqlite3.connect("old.db") as database:
        for column in ["job", "attempt", "local_rank", "revision"]:
            database.execute(f"ALTER TABLE runs DROP COLUMN {column}")
        for column in ["live_error_bytes", "at_peak_error_bytes", "allocated_error_bytes"]:  # since version 2
            database.execute(f"ALTER TABLE sites DROP COLUMN {column}")
        database.execute("PRAGMA user_version = 1")
    export("sqlite", "-o", "old.db", "12")
    with sqlite3.connect("old.db") as database:
        assert database.execute("SELECT job, count(*) FROM runs GROUP BY job").fetchall() == [(None, 2), ("12", 2)]
        database.execute("PRAGMA user_version = 99")
    export("sqlite", "-o", "old.db", "13", status=2)


def leaks():
    assert [(place, runs, jobs, round(mib)) for place, runs, jobs, mib in ask(queries[0])] == LEAKS


def peaks():
    rows = ask(queries[1])
    assert [(revision, round(mib)) for revision, program, mib, _ in rows if program == "train"] == PEAKS, rows
    assert [(revision, round(mib)) for revision, program, mib, _ in rows if program == "serve"] == [("dddd", 90)]


def out_of_memory():
    rows = ask(queries[2])
    assert [(job, rank, round(mib)) for job, rank, _, _, mib, *_ in rows] == [("13", 1, 900)], rows


def devices():
    rows = ask(queries[3])
    assert [round(percent, 3) for *_, percent in rows] == [round(210 * 100 / 1024, 3)] * 2, rows


def findings():
    rows = {name: jobs for name, _, jobs, _ in ask(queries[4])}
    assert rows["oom"] == 1 and rows["leak.exit"] == 4, rows


def shell():
    """The command line of SQLite reads the same file and the same text."""
    if not shutil.which("sqlite3"):
        return "sqlite3 is not installed"
    for query in queries:
        said = subprocess.run(["sqlite3", "-json", "week.db", query], capture_output=True, text=True, check=True)
        assert len(json.loads(said.stdout)) == len(ask(query)), query
    return None


def lines():
    documents = [json.loads(line) for line in export("jsonl", ".").splitlines()]
    assert [document["process"]["job"] for document in documents] and len(documents) == 8
    one = export("json", "11/rank0.gmt")
    assert json.loads(one) in documents or any(d["process"] == json.loads(one)["process"] for d in documents)
    rows = list(csv.DictReader(export("csv", ".").splitlines()))
    assert len(rows) == 3 * 6 + 2 * 2 and {row["job"] for row in rows} == {"11", "12", "13", "14"}
    assert sum(int(row["live_bytes"]) for row in rows) == sum(mib for *_, mib in LEAKS) << 20


def metrics():
    text = export("openmetrics", ".")
    assert text.endswith("# EOF\n") and text.count("# TYPE gpumemtrace_peak_bytes gauge") == 1
    samples = re.findall(r'^gpumemtrace_peak_bytes\{(.*)\} (\d+)$', text, re.MULTILINE)
    assert len(samples) == 8 and len({labels for labels, _ in samples}) == 8
    assert all('job="' in labels and 'rank="' in labels for labels, _ in samples)
    names = re.findall(r'^(\w+)\{', text, re.MULTILINE)
    assert names == sorted(names, key=names.index), "a family is in two places"
    collapsed = export("collapsed", "11")
    assert {line.split(";")[0] for line in collapsed.splitlines()} == {"rank 0", "rank 1"}


def one_process_formats():
    assert export("torch-snapshot", "-o", "x.pickle", "11") == \
        "x.rank0.pickle: 11/rank0.gmt\nx.rank1.pickle: 11/rank1.gmt\n"
    assert export("torch-snapshot", "-q", "-o", "x.pickle", "11") == ""
    done = subprocess.run([tool, "export", "--format", "torch-snapshot", "11"], capture_output=True, check=False)
    assert done.returncode == 2 and b"-o OUT" in done.stderr and not done.stdout, done.stderr


DRIVER = """
import { DuckDBInstance } from '@duckdb/node-api';
import { readFileSync } from 'node:fs';
const connection = await (await DuckDBInstance.create(':memory:')).connect();
const answers = [];
for (const query of JSON.parse(readFileSync(0, 'utf8')))
    answers.push((await connection.runAndReadAll(query)).getRowsJson());
console.log(JSON.stringify(answers));
"""


def get_duckdb():
    """None once it is there, else why not."""
    if not shutil.which("node") or not shutil.which("npm"):
        return "node and npm are not installed"
    os.makedirs(npm_work, exist_ok=True)
    if not os.path.isdir(os.path.join(npm_work, "node_modules", "@duckdb", "node-api")):
        done = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--fetch-retries=1", "--prefix", npm_work, DUCKDB],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return "npm could not get " + DUCKDB
    with open(os.path.join(npm_work, "ask.mjs"), "w", encoding="utf-8") as driver:
        driver.write(DRIVER)
    return None


def duckdb():
    lacks = get_duckdb()
    if lacks:
        return lacks
    export("csv", "-o", "sites.csv", ".")
    export("jsonl", "-o", "runs.jsonl", ".")
    done = subprocess.run(["node", os.path.join(npm_work, "ask.mjs")], input=json.dumps(duckdb_queries),
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    who, peak = json.loads(done.stdout)
    assert [(place, int(runs), int(jobs), round(mib)) for place, runs, jobs, mib in who] == LEAKS, who
    assert [(revision, round(mib)) for revision, mib, _ in peak] == PEAKS + [("dddd", 90)], peak
    return None


with tempfile.TemporaryDirectory() as work:
    subprocess.run([make_fleet, work], check=True)
    os.chdir(work)
    for body in [appended, older_database, leaks, peaks, out_of_memory, devices, findings, shell, lines, metrics,
                 one_process_formats, duckdb]:
        test(body.__name__, body)
    os.chdir("/")
print(f"1..{number}")
sys.exit(failures != 0)
