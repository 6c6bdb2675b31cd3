"""PyTorch's own snapshots where a file is taken: its figures, older schemas, hostile pickles.

import.py TOOL DATA SCHEMA prints TAP. DATA holds three snapshots of PyTorch 2.11 and, as JSON, what
torch.cuda.memory_stats() said in the same runs.
"""

import copy
import json
import os
import pickle
import subprocess
import sys
import tempfile

try:
    import jsonschema
except ImportError:
    jsonschema = None

tool, data, schema = (os.path.abspath(path) for path in sys.argv[1:4])
number = failures = 0
NAMES = ("native", "expandable", "streams")


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
    done = subprocess.run([tool, *arguments], capture_output=True, check=False, timeout=60)
    said = done.stderr.decode(errors="replace")
    assert done.returncode == status, f"{arguments}: exit status {done.returncode}: {said}"
    return done.stdout if status == 0 else said


def document(path):
    return json.loads(run("summary", "--json", path))


def path(name):
    return os.path.join(data, f"torch-2.11-{name}.pickle")


def snapshot(name):
    with open(path(name), "rb") as file:
        return pickle.load(file)


def write(value, protocol=4):
    with open("made.pickle", "wb") as file:
        file.write(value if isinstance(value, bytes) else pickle.dumps(value, protocol))
    return "made.pickle"


# ---- the three real ones ----

FIGURES = {
    "allocated_bytes": "allocated_bytes.all.current",
    "allocated_peak_bytes": "allocated_bytes.all.peak",
    "reserved_bytes": "reserved_bytes.all.current",
    "reserved_peak_bytes": "reserved_bytes.all.peak",
    "active_bytes": "active_bytes.all.current",
    "requested_bytes": "requested_bytes.all.current",
    "inactive_split_bytes": "inactive_split_bytes.all.current",
    "allocations": "allocation.all.allocated",
    "frees": "allocation.all.freed",
    "ooms": "num_ooms",
}


def figures(name):
    with open(os.path.join(data, f"torch-2.11-{name}.json"), encoding="utf-8") as file:
        said = json.load(file)
    found = document(path(name))
    (torch,) = found["torch"]
    for ours, theirs in FIGURES.items():
        assert torch[ours] == said["marks"][-1][theirs], (ours, torch[ours], theirs, said["marks"][-1])
    totals = said["snapshot_totals"]
    assert torch["segments"] == totals["segments"]
    holes = next(row for row in found["fragmentation"] if row["level"] == "torch")
    assert holes["reserved_bytes"] == totals["total_size"]
    assert holes["used_bytes"] == totals["active"]
    assert holes["largest_free_bytes"] == totals["largest_inactive"]
    sites = [site for site in found["sites"] if site["level"] == "torch"]
    assert sum(site["live_bytes"] for site in sites) == totals["allocated"]
    assert sum(site["bytes_at_peak"] for site in sites) == torch["allocated_peak_bytes"]
    assert torch["alloc_retries"] is None and found["process"]["pid"] is None
    assert found["process"]["end"] == "running" and found["leaks"]["exit_bytes"] is None
    if jsonschema:
        with open(schema, encoding="utf-8") as file:
            jsonschema.Draft202012Validator(json.load(file)).validate(found)


def whatif(name):
    """The document of whatif is as the schema says, whatever the settings."""
    for arguments in (), ("--conf", "default", "--torch", "2.7"), ("--capacity", "100MiB"):
        found = json.loads(run("whatif", "--json", *arguments, path(name)))
        assert found["whatif_run"]["best"] in [row["conf"] for row in found["whatif"]], found["whatif_run"]
        if jsonschema:
            with open(schema, encoding="utf-8") as file:
                jsonschema.Draft202012Validator(json.load(file)).validate(found)
        assert "whatif" not in document(path(name))


def annotations():
    """By hand: a segment of 20 MiB, blocks of whole MiB; step 0 keeps A, fwd has B, step 1 has C in the place of B."""
    mib, at = 1 << 20, 0x7F0000000000
    frames = [{"name": "train", "filename": "train.py", "line": 7}]
    block = {"address": at, "size": 2 * mib, "requested_size": 2 * mib, "state": "active_allocated", "frames": frames}
    rest = {"address": at + 2 * mib, "size": 18 * mib, "requested_size": 0, "state": "inactive", "frames": []}
    segment = {"device": 0, "address": at, "total_size": 20 * mib, "allocated_size": 2 * mib, "active_size": 2 * mib,
               "requested_size": 2 * mib, "stream": 0, "segment_type": "large", "segment_pool_id": (0, 3),
               "is_expandable": False, "frames": frames, "blocks": [block, rest]}

    def event(action, offset, size, time):
        return {"action": action, "addr": at + offset * mib, "size": size * mib, "stream": 0, "time_us": time,
                "frames": frames, "compile_context": "N/A", "user_metadata": "", "pool_id": (0, 3)}

    def edge(stage, name, time):
        return {"stage": stage, "name": name, "device": 0, "time_us": time}
    trace = [event("segment_alloc", 0, 20, 100), event("alloc", 0, 2, 200), event("alloc", 2, 4, 300),
             event("free_requested", 2, 4, 400), event("free_completed", 2, 4, 400),
             event("alloc", 2, 6, 500), event("free_requested", 2, 6, 600), event("free_completed", 2, 6, 600)]
    made = {"segments": [segment], "device_traces": [trace], "allocator_settings": {}, "host_segments": [{"new": 1}],
            "external_annotations": [edge("START", "step 0", 150), edge("START", "fwd", 250), edge("END", "fwd", 350),
                                     edge("END", "step 0", 450), edge("START", "step 1", 480), edge("END", "step 1", 650),
                                     edge("END", "never begun", 660), edge("START", "never ended", 670)]}
    found = document(write(made))
    ranges = {one["path"]: one for one in found["ranges"] if one["closed"]}
    assert set(ranges) == {"step #", "step 0", "step 1", "step # / fwd"}, set(ranges)
    steps, forward = ranges["step #"], ranges["step # / fwd"]
    assert (steps["closed"], steps["lowest_peak_bytes"], steps["peak_bytes"]) == (2, 6 * mib, 8 * mib), steps
    assert (steps["highest"]["name"], steps["most_retained"]["name"]) == ("step 1", "step 0"), steps
    assert steps["retained_bytes"] == steps["work_bytes"] == 2 * mib and steps["highest"]["thread"] is None, steps
    assert [one["bytes"] for one in steps["most_retained"]["sites"]] == [2 * mib], steps
    assert (forward["peak_bytes"], forward["highest"]["start_bytes"], forward["retained_bytes"]) == (6 * mib, 2 * mib, 4 * mib)
    assert (steps["source"], steps["highest"]["peak_at_s"]) == ("annotation", 0.0004), steps
    assert found["torch"][0]["private_pools"] == [
        {"pool": "program 3", "segments": 1, "reserved_bytes": 20 * mib, "allocated_bytes": 2 * mib}], found["torch"]
    assert not [line for line in found["file"]["warnings"] if "make no sense" in line], found["file"]["warnings"]
    for name in NAMES:
        whole = snapshot(name)
        starts = [one["name"] for one in whole["external_annotations"] if one["stage"] == "START"]
        assert {one["name"]: one["closed"] for one in document(path(name))["ranges"]} == {
            one: starts.count(one) for one in set(starts)}
        pools = {segment["segment_pool_id"] for segment in whole["segments"]} - {(0, 0)}
        assert len(document(path(name))["torch"][0]["private_pools"]) == len(pools)


def ooms():
    found = document(path("native"))["ooms"]
    assert [(o["requested_bytes"], o["free_bytes"], o["verdict"]) for o in found] == [
        (8 << 30, 1077018624, "exhausted"), (1 << 30, 1077018624, "limit")], found
    assert found[0]["stack"][0]["file"] == "train.py" and found[0]["stack"][0]["line"] == 23
    assert sum(site["bytes"] for site in found[0]["top_sites"]) == 148227782656


def round_trip(name):
    """What torch-snapshot writes of an imported snapshot is the snapshot, but for what we do not keep."""
    before = snapshot(name)
    after = pickle.loads(run("export", "--format", "torch-snapshot", path(name)))

    def blocks(segments):
        return sorted((s["address"], s["total_size"], s["allocated_size"], s["active_size"],
                       s["stream"], s["segment_type"], s["is_expandable"],
                       tuple((b["address"], b["size"], b["state"],
                              tuple((f["name"], f["filename"], f["line"]) for f in b["frames"])
                              if b["state"] != "inactive" else ())
                             for b in s["blocks"])) for s in segments)

    assert blocks(before["segments"]) == blocks(after["segments"])

    def events(trace):
        # sizes of blocks are what was given there, and what was asked for here
        return [(e["action"], e.get("addr"), e["time_us"] if e["action"] == "alloc" else 0,
                 e["size"] if "segment" in e["action"] else 0)
                for e in trace if e["action"] != "free_completed"]

    def requested(trace):
        return [e for e in events(trace) if e[0] != "segment_unmap"]

    assert requested(before["device_traces"][0]) == requested(after["device_traces"][0])


# ---- other schemas ----


def protocols():
    expected = document(path("streams"))["torch"]
    for protocol in (2, 3, 4, 5):
        assert document(write(snapshot("streams"), protocol))["torch"] == expected, protocol


def of_2023():
    """No addresses of blocks, histories in place of frames, no requested sizes, no flags."""
    value = snapshot("streams")
    for segment in value["segments"]:
        for key in ("requested_size", "segment_pool_id", "is_expandable", "frames"):
            segment.pop(key)
        for block in segment["blocks"]:
            block["history"] = [{"addr": block.pop("address"), "real_size":
                                 block.pop("requested_size"), "frames": block.pop("frames")}]
    value.pop("external_annotations")
    now, then = document(path("streams")), document(write(value))
    for key in ("allocated_bytes", "allocated_peak_bytes", "reserved_bytes", "active_bytes"):
        assert now["torch"][0][key] == then["torch"][0][key], key
    assert then["torch"][0]["requested_bytes"] is None
    only_segments = document(write(value["segments"]))
    assert only_segments["torch"][0]["allocated_bytes"] == now["torch"][0]["allocated_bytes"]
    assert only_segments["torch"][0]["allocated_peak_bytes"] is None
    live = [sorted((s["live_bytes"], s["live_count"]) for s in d["sites"]
                   if s["level"] == "torch" and s["live_bytes"]) for d in (now, only_segments)]
    assert live[0] == live[1]


def pending_free():
    value = snapshot("streams")
    segment = max(value["segments"], key=lambda s: s["allocated_size"])
    block = next(b for b in segment["blocks"] if b["state"] == "active_allocated")
    block["state"] = "active_pending_free"
    value["device_traces"] = [[]]
    found = document(write(value))["torch"][0]
    assert found["active_bytes"] == 164339200
    assert found["allocated_bytes"] == 164339200 - block["size"]
    text = run("summary", "made.pickle").decode()
    assert "PyTorch pending frees" in text
    again = pickle.loads(run("export", "--format", "torch-snapshot", "made.pickle"))
    states = [b["state"] for s in again["segments"] for b in s["blocks"]]
    assert states.count("active_pending_free") == 1


def history_cut():
    value = snapshot("native")
    value["device_traces"][0] = value["device_traces"][0][100:]
    found = document(write(value))
    torch = found["torch"][0]
    assert torch["allocated_bytes"] == 93353984 and torch["active_bytes"] == 93353984
    assert torch["allocated_peak_bytes"] is None and torch["frees"] is None
    assert any("begins in the middle" in warning for warning in found["file"]["warnings"])
    # what the history has is still told: the highest that is in it
    level = next(s for s in found["timeline"] if s["series"] == "torch_allocated")
    assert max(level["max"]) == 148227782656


def history_wrong():
    value = snapshot("native")
    events = value["device_traces"][0]
    events.remove(next(e for e in events if e["action"] == "free_completed"))
    found = document(write(value))
    assert found["torch"][0]["allocated_bytes"] == 93353984
    assert found["torch"][0]["allocated_peak_bytes"] is None
    assert any("no history" in warning for warning in found["file"]["warnings"])


def two_devices():
    value = snapshot("native")
    other = copy.deepcopy(value["segments"])
    for segment in other:
        segment["device"] = 3
    value["segments"] += other
    value["device_traces"] += [[], [], copy.deepcopy(value["device_traces"][0])]
    found = document(write(value))
    assert [t["device"] for t in found["torch"]] == [0, 3]
    assert [t["allocated_peak_bytes"] for t in found["torch"]] == [148227782656] * 2
    assert len(found["devices"]) == 2


def everywhere():
    """Every command takes a snapshot as it takes a file."""
    run("leaks", path("native"))
    assert b"cut short" not in run("fragmentation", path("streams"))
    assert b"8.00 GiB" in run("oom", path("native"))
    run("sites", path("native"))
    run("timeline", path("native"))
    run("diff", path("native"), path("expandable"))
    run("top", "--once", path("native"))
    run("check", path("native"), status=4)
    for form in ("json", "collapsed", "perfetto", "pprof", "csv", "openmetrics"):
        assert run("export", "--format", form, path("streams"))


# ---- what must be refused ----


class Evil:
    def __reduce__(self):
        return os.system, ("touch it-ran",)


def refused(value, word):
    said = run("summary", write(value), status=3)
    assert said.startswith("gpumem-report: made.pickle") and said.count("\n") == 1, said
    assert word in said, said


def no_code():
    for protocol in (2, 3, 4, 5):
        refused(pickle.dumps({"segments": [Evil()]}, protocol), "not executed")
    for body in (b"cos\nsystem\n", b"(S'touch it-ran'\nios\nsystem\n", b"\x8c\x02os\x8c\x06system\x93",
                 b"\x82\x01", b"Pid\n", b"Q", b"\x8c\x01aR", b"\x81", b"b"):
        refused(b"\x80\x04" + body + b".", "which no snapshot needs")
    assert not os.path.exists("it-ran")


def not_a_snapshot():
    for value in ({}, {"segments": 3}, 7, None, "segments", {"segments": [{"a": 1}]}, [[[]]]):
        refused(pickle.dumps(value, 4), "pickle")
    refused(b"\x80\x02.", "damaged")
    refused(b"\x80\x09N.", "")


def hostile():
    for body, word in (
            (b"N" * 1000, "cut short"), (b"]" + b"h\x05", "refers to"), (b"(" * 1000 + b".", "damaged"),
            (b"X\xff\xff\xff\xff", "cut short"), (b"\x8d" + b"\xff" * 8, "cut short"),
            (b"]r\xff\xff\xff\xff.", "remember"), (b"\x8a\x0a" + b"\x7f" * 10 + b".", "64 bits"),
            (b"\x8b\xff\xff\xff\xff.", "cut short"), (b"Na.", "no list"), (b"]a.", "no list"), (b"a.", "missing"), (b"e.", "not begun"),
            (b"}(Nu.", "dict"), (b"](}(K", "cut short"), (b"(l.", "no snapshot needs")):
        refused(b"\x80\x04" + body, word)
    # a list that holds itself, segments that are the same one again and again
    refused(b"\x80\x04}(X\x08\x00\x00\x00segments]q\x00h\x00au.", "none of them")
    one = pickle.dumps({"address": 1 << 40, "total_size": 1 << 21, "blocks": []}, 2)[2:-1]
    many = b"\x80\x02](" + one + b"q\xfe" + b"h\xfe" * 100000 + b"e."
    assert document(write(many))["torch"][0]["reserved_bytes"] == 1 << 21
    # figures that cannot be
    huge = snapshot("native")
    huge["segments"][0]["total_size"] = (1 << 64) - 1
    huge["segments"][1]["address"] = -5
    huge["segments"][2]["device"] = 1 << 40
    huge["segments"][3]["blocks"][0]["size"] = 1 << 62
    huge["device_traces"][0][0]["size"] = (1 << 64) - 1
    assert any("make no sense" in w for w in document(write(huge))["file"]["warnings"])


def cut_anywhere():
    with open(path("expandable"), "rb") as file:
        whole = file.read()
    for length in range(2, len(whole), 1499):
        run("summary", write(whole[:length]), status=3)


with tempfile.TemporaryDirectory() as directory:
    os.chdir(directory)
    for name in NAMES:
        test(f"figures, {name}", lambda name=name: figures(name))
        test(f"round_trip, {name}", lambda name=name: round_trip(name))
        test(f"whatif, {name}", lambda name=name: whatif(name))
    for body in (annotations, ooms, protocols, of_2023, pending_free, history_cut, history_wrong, two_devices,
                 everywhere, no_code, not_a_snapshot, hostile, cut_anywhere):
        test(body.__name__, body)
    os.chdir("/")
print(f"1..{number}")
sys.exit(failures != 0)
