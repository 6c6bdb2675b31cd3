"""Reads every export back by its own format and holds it against figures written down by hand.

exports.py TOOL MAKE_EVENTS SQL_MD prints TAP. The figures are those of make_events.c. Readers: json,
pickle, sqlite3, csv of Python; prometheus_client where it is installed; profile.proto by its definition
(github.com/google/pprof/proto/profile.proto), below.
"""

import csv
import gzip
import io
import json
import os
import pickle
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile

MIB = 1 << 20
SEGMENT = 0x7F0000000000
tool, make_events, sql_md = (os.path.abspath(path) for path in sys.argv[1:4])
number = failures = 0


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


def run(*arguments, status=0):
    done = subprocess.run([tool, *arguments], capture_output=True, check=False)
    assert done.returncode == status, f"exit status {done.returncode}: {done.stderr.decode()}"
    return done.stdout if status == 0 else done.stderr.decode()


JOB = ("rank0.gmt", "rank0.gmt.old1", "rank1.gmt", "rank2.gmt")


def export(form, *arguments, files=("events.gmt",)):
    return run("export", "--format", form, *arguments, *files)


# ---- perfetto: the Trace Event Format, which Perfetto's importer reads ----


def perfetto():
    trace = json.loads(export("perfetto"))
    events = trace["traceEvents"]
    for event in events:
        assert event["ph"] in "MCXi" and event["pid"] == 4321 and isinstance(event["name"], str)
        assert event["ph"] == "M" or event["ts"] >= 0
        assert event["ph"] != "X" or event["dur"] >= 0
        if event["ph"] == "C":
            assert event["args"] and all(isinstance(v, int) for v in event["args"].values())
    exact = [(e["ts"], e["args"]["bytes"]) for e in events
             if e["name"] == "device 0: torch_allocated, each call"]
    assert exact == [(2000, 8 * MIB), (3000, 12 * MIB), (4000, 14 * MIB), (5000, 6 * MIB),
                     (6000, 2 * MIB)], exact
    line = [(e["ts"], e["args"]) for e in events if e["name"] == "device 0: tracked"]
    assert line == [(0, {"max": 20 * MIB, "min": 0}), (4000, {"max": 20 * MIB, "min": 20 * MIB})]
    slices = [(e["name"], e["ts"], e["dur"]) for e in events if e["ph"] == "X" and e["tid"] == 1]
    assert slices == [("step 1", 1000, 3499.999), ('step "2"', 4500, 1499.999)], slices  # to a nanosecond before the next
    phases = [(e["name"], e["ts"], e["dur"], e["args"]["allocated_bytes"]) for e in events
              if e["ph"] == "X" and e["tid"] == 2]
    assert phases == [("forward", 2000, 999.999, 8 * MIB), ("backward", 3000, 999.999, 4 * MIB),
                      ("forward", 4000, 0, 2 * MIB)], phases
    ooms = [(e["ts"], e["args"]["requested_bytes"]) for e in events if e.get("tid") == 3
            and e["ph"] == "i"]
    assert ooms == [(5500, 9000 * MIB)], ooms


def placed(events, pid):
    """The events of a process, without its number and what only several have."""
    return [{key: value for key, value in event.items() if key != "pid"} for event in events
            if event["pid"] == pid and event["name"] not in ("process_labels", "process_sort_index", "process_name")]


def shifted(events, by):
    return [event | {"ts": event["ts"] + by} if "ts" in event else event for event in events]


def perfetto_job():
    alone = placed(json.loads(export("perfetto"))["traceEvents"], 4321)
    events = json.loads(export("perfetto", files=JOB))["traceEvents"]
    names = {e["args"]["name"].rpartition(", ")[2]: e["pid"] for e in events if e["name"] == "process_name"}
    assert names == {"rank 0": 4321, "rank 1": 4322, "rank 2": 4323}, names  # the pids of a trace are its own
    assert {e["pid"] for e in events} == set(names.values())
    assert placed(events, 4321) == alone
    assert placed(events, 4322) == shifted(alone, 2000)
    assert placed(events, 4323) == alone
    order = {e["pid"]: e["args"]["sort_index"] for e in events if e["name"] == "process_sort_index"}
    assert order[4321] < order[4322] < order[4323], order
    labels = {e["pid"]: e["args"]["labels"] for e in events if e["name"] == "process_labels"}
    assert labels == {4321: "example", 4322: "example", 4323: "example, when it began is not known: drawn from 0"}


# ---- pprof: profile.proto on the wire ----


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def message(data):
    """The fields of a message: {number: [values]}; 64-bit numbers and bytes."""
    fields, at = {}, 0
    while at < len(data):
        key, at = varint(data, at)
        assert key & 7 in (0, 2), f"wire type {key & 7}"
        value, at = varint(data, at)
        if key & 7 == 2:
            assert at + value <= len(data)
            value, at = data[at:at + value], at + value
        fields.setdefault(key >> 3, []).append(value)
    return fields


def packed(data):
    values, at = [], 0
    while at < len(data):
        value, at = varint(data, at)
        values.append(value)
    return values


def profile(*arguments, duration=6000000, **options):
    """[(stack of (function, file, line), {type: value}, {label: value})] of a profile."""
    top = message(gzip.decompress(export("pprof", *arguments, **options)))
    texts = [text.decode() for text in top[6]]
    assert texts[0] == "" and len(set(texts)) == len(texts)
    types = []
    for data in top[1]:
        kind = message(data)
        types.append((texts[kind[1][0]], texts[kind[2][0]]))
    functions = {f[1][0]: f for f in map(message, top[5])}
    locations = {}
    for data in top[4]:
        place = message(data)
        line = message(place[4][0])
        function = functions[line[1][0]]
        locations[place[1][0]] = (texts[function[2][0]], texts[function.get(4, [0])[0]],
                                  line.get(2, [0])[0])
    assert 0 not in locations and 0 not in functions
    samples = []
    for data in top.get(2, []):
        sample = message(data)
        values = packed(sample[2][0])
        assert len(values) == len(types)
        labels = {texts[m[1][0]]: texts[m[2][0]] for m in map(message, sample[3])}
        samples.append(([locations[i] for i in packed(sample[1][0])],
                        dict(zip(types, values)), labels))
    assert texts[top[14][0]] == "inuse_space"
    assert top[9] == [1700000000000000000] and top[10] == [duration]
    return samples


def pprof():
    samples = profile("--level", "torch")
    assert len(samples) == 2
    stack, values, labels = samples[0]
    assert stack == [("Model.forward", "/home/user/model.py", 20), ("step", "/home/user/train.py", 41),
                     ("<module>", "/home/user/train.py", 80)], stack
    assert values == {("inuse_objects", "count"): 1, ("inuse_space", "bytes"): 2 * MIB,
                      ("peak_space", "bytes"): 10 * MIB, ("alloc_objects", "count"): 2,
                      ("alloc_space", "bytes"): 10 * MIB}, values
    assert labels["kind"] == "device" and labels["device"] == "0", labels
    driver = profile()
    assert [s[1][("inuse_space", "bytes")] for s in driver] == [20 * MIB]
    assert len({s[0][1] for s in samples}) == 1  # the frame that both stacks share is one location


def pprof_job():
    samples = profile("--level", "torch", duration=8000000, files=JOB)
    of_rank = {rank: [s[:2] for s in samples if s[2]["rank"] == rank] for rank in ("0", "1", "2")}
    alone = [s[:2] for s in profile("--level", "torch")]
    assert all(of == alone for of in of_rank.values()) and len(samples) == 3 * len(alone), samples
    assert all(s[2]["pid"] == "4321" for s in samples)


# ---- torch-snapshot: what PyTorch's _memory_viz.py and MemoryViz.js look at ----

SEGMENT_KEYS = {"device", "address", "total_size", "allocated_size", "active_size", "requested_size",
                "stream", "segment_type", "segment_pool_id", "is_expandable", "frames", "blocks"}
BLOCK_KEYS = {"address", "size", "requested_size", "state", "frames"}
EVENT_KEYS = {"action", "addr", "size", "stream", "time_us", "frames"}


def torch_snapshot():
    snapshot = pickle.loads(export("torch-snapshot"))
    assert set(snapshot) == {"segments", "device_traces", "allocator_settings", "external_annotations"}
    (segment,) = snapshot["segments"]
    assert set(segment) == SEGMENT_KEYS, set(segment) ^ SEGMENT_KEYS
    assert segment["address"] == SEGMENT and segment["total_size"] == 20 * MIB
    assert segment["allocated_size"] == segment["active_size"] == 2 * MIB
    assert segment["is_expandable"] is False and segment["segment_type"] == "large"
    assert segment["frames"][0]["filename"].endswith("linear.py")
    blocks = [(b["address"], b["size"], b["state"]) for b in segment["blocks"]]
    assert blocks == [(SEGMENT, 12 * MIB, "inactive"),
                      (SEGMENT + 12 * MIB, 2 * MIB, "active_allocated"),
                      (SEGMENT + 14 * MIB, 6 * MIB, "inactive")], blocks
    assert all(set(b) == BLOCK_KEYS for b in segment["blocks"])
    frames = segment["blocks"][1]["frames"]
    assert frames[0] == {"name": "Model.forward", "filename": "/home/user/model.py", "line": 20}
    assert len(frames) == 3
    (trace,) = snapshot["device_traces"]
    for event in trace:
        assert set(event) == (EVENT_KEYS if event["action"] != "oom"
                              else EVENT_KEYS - {"addr"} | {"device_free"}), event
    actions = [(e["action"], e.get("addr", 0), e["size"], e["time_us"] - 1700000000000000)
               for e in trace]
    assert actions == [
        ("alloc", SEGMENT, 8 * MIB, 2000), ("alloc", SEGMENT + 8 * MIB, 4 * MIB, 3000),
        ("alloc", SEGMENT + 12 * MIB, 2 * MIB, 4000), ("free_requested", SEGMENT, 8 * MIB, 5000),
        ("free_completed", SEGMENT, 8 * MIB, 5000), ("oom", 0, 9000 * MIB, 5500),
        ("free_requested", SEGMENT + 8 * MIB, 4 * MIB, 6000),
        ("free_completed", SEGMENT + 8 * MIB, 4 * MIB, 6000)], actions
    assert trace[5]["device_free"] == 100 * MIB
    names = [(a["stage"], a["name"]) for a in snapshot["external_annotations"]]
    assert names == [("START", "step 1"), ("END", "step 1"), ("START", 'step "2"'),
                     ("END", 'step "2"')], names


# ---- sqlite ----


def torch_snapshot_job():
    said = run("export", "--format", "torch-snapshot", "-o", "job.pickle", *JOB, "events.gmt", "other.gmt").decode()
    made = {line.split(": ")[1]: line.split(": ")[0] for line in said.splitlines()}
    assert made == {"rank0.gmt": "job.rank0.pickle", "rank0.gmt.old1": "job.rank0-2.pickle",
                    "rank1.gmt": "job.rank1.pickle", "rank2.gmt": "job.rank2.pickle",
                    "events.gmt": "job.pid4321.pickle", "other.gmt": "job.pid4322.pickle"}, said
    for read, written in made.items():
        with open(written, "rb") as file:
            assert file.read() == export("torch-snapshot", files=(read,)), written
    shutil.copy("rank0.gmt", "own.rank0.gmt")  # the name that its output would have
    said = run("export", "--format", "torch-snapshot", "-o", "own.gmt", "own.rank0.gmt", "rank1.gmt", status=2)
    assert "one of the files to read" in said and os.path.getsize("own.rank0.gmt") == os.path.getsize("rank0.gmt")
    assert os.path.exists("own.rank1.gmt")
    run("export", "--format", "torch-snapshot", "-o", "left.pickle", "rank1.gmt", "missing.gmt", status=3)
    assert os.path.exists("left.rank1.pickle")


def sqlite():
    for _ in range(2):  # the second time replaces the run
        run("export", "--format", "sqlite", "-o", "runs.db", "events.gmt")
    run("export", "--format", "sqlite", "-o", "runs.db", "other.gmt")
    with sqlite3.connect("runs.db") as db:
        assert db.execute("SELECT count(*) FROM runs").fetchone() == (2,)
        for table in ("devices", "sites", "blocks", "events", "marks", "timeline", "ooms"):
            counts = dict(db.execute(f"SELECT run, count(*) FROM {table} GROUP BY run"))
            assert len(counts) == 2 and len(set(counts.values())) == 1, (table, counts)
        live = db.execute("SELECT sum(live_bytes) FROM sites WHERE run = 1 AND level = 'torch'")
        assert live.fetchone() == (2 * MIB,)
        events = db.execute("SELECT op, bytes FROM events WHERE run = 1 ORDER BY number").fetchall()
        assert events == [("alloc", 8 * MIB), ("alloc", 4 * MIB), ("alloc", 2 * MIB),
                          ("free", 8 * MIB), ("free", 4 * MIB)], events
        depth = db.execute("SELECT function, line FROM frames WHERE run = 1 AND depth = 0 "
                           "ORDER BY line").fetchall()
        assert depth == [("Tensor.backward", 9), ("Model.forward", 20), ("Linear.__init__", 100)]
        assert db.execute("SELECT address FROM blocks WHERE run = 1").fetchone() == (SEGMENT,)
    assert "needs -o" in run("export", "--format", "sqlite", "events.gmt", status=2)
    with open("text.db", "w", encoding="utf-8") as file:
        file.write("this is a text " * 100)
    assert "text.db" in run("export", "--format", "sqlite", "-o", "text.db", "events.gmt", status=2)


def sql_examples():
    with open(sql_md, encoding="utf-8") as file:
        text = file.read()
    examples = re.findall(r"```sql\n(.*?)```", text, re.S)
    assert len(examples) >= 5
    with sqlite3.connect("runs.db") as db:
        for example in examples:
            rows = db.execute(example).fetchall()
            assert rows, f"nothing comes of: {example}"
        described = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", text, re.M))
        for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
            assert re.findall(r"`(\w+)`", described[table]) == columns, (table, columns)


# ---- the formats that are text ----


def openmetrics():
    try:
        from prometheus_client.openmetrics.parser import text_string_to_metric_families
    except ImportError:
        return "python3-prometheus-client is not installed"
    families = {f.name: f for f in
                text_string_to_metric_families(export("openmetrics").decode())}
    (sample,) = families["gpumemtrace_allocated_bytes"].samples
    assert sample.value == 20 * MIB and sample.labels["device"] == "0"
    assert families["gpumemtrace_ooms"].samples[0].value == 1
    assert families["gpumemtrace_allocation_calls"].type == "counter"
    return None


def collapsed():
    lines = export("collapsed", "--level", "torch").decode().splitlines()
    form = re.compile(r"[^;]+(;[^;]+)* \d+")  # flamegraph.pl: /^(.*)\s+?(\d+(?:\.\d*)?)$/
    assert all(form.fullmatch(line) for line in lines)
    assert lines == [f"<module> (train.py:80);step (train.py:41);Model.forward (model.py:20) {2 * MIB}"]


def comma_separated():
    rows = list(csv.DictReader(io.StringIO(export("csv").decode(), newline="")))
    assert [int(row["allocated_bytes"]) for row in rows] == [20 * MIB, 10 * MIB, 4 * MIB]
    assert rows[1]["phase"] == "forward" and rows[2]["phase"] == "backward"


def unknown():
    said = run("export", "--format", "pdf", "events.gmt", status=2)
    listed = run("export", "--help").decode()
    for form in ("json", "collapsed", "perfetto", "pprof", "torch-snapshot", "sqlite", "csv", "csv-ranges",
                 "openmetrics"):
        assert form in said and f"\n  {form} " in listed, form


with tempfile.TemporaryDirectory() as directory:
    os.chdir(directory)
    subprocess.run([make_events, directory], check=True)
    for body in (perfetto, perfetto_job, pprof, pprof_job, torch_snapshot, torch_snapshot_job, sqlite, sql_examples, openmetrics, collapsed,
                 comma_separated, unknown):
        test(body.__name__, body)
    os.chdir("/")
print(f"1..{number}")
sys.exit(failures != 0)
