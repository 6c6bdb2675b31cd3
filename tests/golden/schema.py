"""Checks the JSON documents of every command and fixture against docs/schema/report.schema.json.

schema.py TOOL MAKE_FILES SCHEMA prints TAP. Also reads back JUnit, SARIF, CSV and the collapsed stacks.
"""

import csv
import json
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

try:
    import jsonschema
except ImportError:
    print("1..0 # SKIP python3-jsonschema is not installed")
    sys.exit(0)

tool, make_files, schema_path = (os.path.abspath(path) for path in sys.argv[1:4])
with open(schema_path, encoding="utf-8") as file:
    schema = json.load(file)
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)
number = failures = 0


def said(*arguments, status=0):
    done = subprocess.run([tool, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == status, f"exit status {done.returncode}: {done.stderr}"
    return done.stdout


def test(name, body):
    global number, failures
    number += 1
    try:
        body()
        print(f"ok {number} - {name}")
    except Exception as error:  # noqa: BLE001, every failure is a result
        failures += 1
        text = " ".join(f"{type(error).__name__}: {error}".split())
        print(f"not ok {number} - {name}\n# {text[:2000]}")


def valid(*arguments, status=0):
    document = json.loads(said(*arguments, status=status))
    errors = [f"{list(e.path)}: {e.message[:200]}" for e in validator.iter_errors(document)]
    assert not errors, errors[:5]
    return document


def no_null_bytes_as_zero():
    document = valid("summary", "--json", "killed.gmt")
    assert document["leaks"]["exit_bytes"] is None and document["leaks"]["exit_count"] is None
    assert document["process"]["end"] == "killed" and document["file"]["clean_exit"] is False
    assert document["process"]["rank"] is None


def leaks():
    document = valid("leaks", "--json", "leaks.gmt")
    sites = {site["id"]: site for site in document["sites"]}
    mib = 1 << 20
    assert len(sites) == len(document["sites"]) == 5
    assert [sites[i]["live_bytes"] for i in document["leaks"]["grow"]] == [20 * mib]
    # 4 x 64 MiB and 20 x 1 MiB of the device, 2 x 1000 B pinned; registered memory is not owned
    assert document["leaks"]["exit_bytes"] == 276 * mib + 2000
    assert document["leaks"]["exit_count"] == 26
    assert document["totals"][0]["current_bytes"] == 276 * mib
    kinds = {row["kind"]: row for row in document["usage"]}
    assert kinds["registered"]["owned"] is False and kinds["pinned"]["device"] is None
    grown = next(s for s in document["sites"] if s["verdict"] == "grow")
    assert grown["stack"][0] == {"kind": "python", "function": "remember", "file": "/home/user/train.py",
                                 "line": 22, "module": None, "offset": None}
    ids = [finding["id"] for finding in document["findings"]]
    assert {"leak.grow", "leak.exit", "leak.pinned", "error.free-failed"} <= set(ids), ids


def over():
    ledger = valid("summary", "--json", "over.gmt")["ledger"][0]
    assert ledger["unexplained_bytes"] == -34 << 20
    assert ledger["unexplained_growth_bytes"] == 0
    assert ledger["process_used_bytes"] - ledger["unexplained_bytes"] == sum(
        row["bytes"] for row in ledger["rows"])


def torch():
    document = valid("oom", "--json", "torch.gmt")
    mib = 1 << 20
    row = document["fragmentation"][0]
    assert row["level"] == "torch" and row["reserved_bytes"] == 800 * mib
    assert row["used_bytes"] == 20 * mib and row["largest_free_bytes"] == 390 * mib
    assert row["percent"] == 97.5 and row["external_percent"] == 50.0
    assert document["torch"][0]["inactive_split_bytes"] == 780 * mib
    assert document["torch"][0]["active_bytes"] is None
    oom = document["ooms"][0]
    assert oom["verdict"] == "fragmented" and oom["phase"] == "forward"
    assert oom["driver_bytes"] is None and row["at_work_end"]["largest_free_bytes"] == 390 * mib
    rows = document["ledger"][0]["rows"]
    total = sum(r["bytes"] for r in rows) + document["ledger"][0]["unexplained_bytes"]
    assert total == document["ledger"][0]["process_used_bytes"]
    assert document["retries"]["attempts"] == 1 and document["retries"]["stall_s"] == 0.0025


def several():
    document = valid("summary", "--json", "rank1.gmt", "rank0.gmt")
    assert [run["process"]["rank"] for run in document["runs"]] == [0, 1]
    assert document["job"]["ranks"] == 2 and document["file"] is None
    assert document["job"]["totals"][0]["current_bytes"] == 7 * 256 << 20
    assert "imbalance" in [finding["id"] for finding in document["job"]["findings"]]


def cut():
    document = valid("summary", "--json", "cut.gmt")
    assert document["file"]["complete"] is False and document["file"]["warnings"]


def filters():
    document = valid("sites", "--json", "--kind", "pinned", "leaks.gmt")
    assert [site["kind"] for site in document["sites"]] == ["pinned"]
    assert [row["kind"] for row in document["usage"]] == ["pinned"]
    assert valid("sites", "--json", "--device", "3", "leaks.gmt")["sites"] == []


def gates():
    document = valid("check", "--json", "leaks.gmt", status=1)
    by_name = {gate["gate"]: gate for gate in document["gates"]}
    assert by_name["no-oom"]["passed"] is True and by_name["leaks"]["passed"] is False
    assert by_name["leaks"]["value"] == document["leaks"]["exit_bytes"]
    assert len(by_name["leaks"]["sites"]) == 3


def suppressed():
    document = valid("check", "--json", "--suppressions", "suppressions", "leaks.gmt", status=1)
    assert [s["pattern"] for s in document["leaks"]["suppressed"]] == ["^pin$", "model.py"]
    assert [s["bytes"] for s in document["leaks"]["suppressed"]] == [2000, 256 << 20]
    assert document["leaks"]["unused_suppressions"] == ["nothing_like_this*"]


def junit():
    said("check", "--junit", "junit.xml", "leaks.gmt", "clean.gmt", status=1)
    root = xml.parse("junit.xml").getroot()
    assert root.tag == "testsuites" and root.get("tests") == "4" and root.get("failures") == "1"
    failure = root.find(".//testcase[@name='leaks']/failure")
    assert "remember" in failure.text and "/home/user/train.py:22" in failure.text


def sarif():
    said("check", "--sarif", "out.sarif", "leaks.gmt", status=1)
    with open("out.sarif", encoding="utf-8") as opened:
        log = json.load(opened)
    run = log["runs"][0]
    rules = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    assert log["version"] == "2.1.0" and len(run["results"]) == 3
    assert run["originalUriBaseIds"] == {"RUNROOT": {"uri": "file:///home/user/"}}
    for result in run["results"]:
        assert result["ruleId"] in rules and result["message"]["text"] and result["level"] == "error"
        place = result["locations"][0]["physicalLocation"]
        assert place["artifactLocation"] == {"uri": place["artifactLocation"]["uri"], "uriBaseId": "RUNROOT"}
        assert re.fullmatch(r"[a-z]+\.py", place["artifactLocation"]["uri"]), place
        assert place["region"]["startLine"] >= 1


def csv_lines():
    text = said("export", "--format", "csv", "leaks.gmt")
    rows = list(csv.DictReader(text.splitlines()))
    assert len(rows) == 5 and sum(int(row["live_bytes"]) for row in rows) == (276 << 20) + 2000 + 4096


def collapsed():
    lines = said("export", "--format", "collapsed", "leaks.gmt").splitlines()
    assert sum(int(line.rsplit(" ", 1)[1]) for line in lines) == (276 << 20) + 2000 + 4096
    assert any(line.startswith("<module> (train.py:80);step (train.py:43);remember") for line in lines)


def bounded():
    for name in sorted(os.listdir(".")):
        if not name.endswith(".gmt") or subprocess.run([tool, name], capture_output=True, check=False).returncode:
            continue
        whole = valid("summary", "--json", name)
        by_live = sorted((-site["live_bytes"], -site["peak_bytes"], site["id"]) for site in whole["sites"])
        for most in range(4):
            document = valid("summary", "--json", f"--top={most}", name)
            kept = [site["id"] for site in document["sites"]]
            assert {site[2] for site in by_live[:most]} <= set(kept), name
            assert kept == [site["id"] for site in whole["sites"] if site["id"] in kept], name
            for key in "marks", "findings", "errors", "failures", "ooms", "phases", "categories", "implicit_frees":
                if key != "ooms":
                    assert document[key] == whole[key][:most], (name, key)
                assert len(document[key]) == min(most, len(whole[key])), (name, key)
            for key in "totals", "usage", "devices", "process", "holders_taken":
                assert document[key] == whole[key], (name, key)
            for line, long in zip(document["timeline"], whole["timeline"], strict=True):
                if most and long["max"]:
                    assert max(line["max"]) == max(long["max"]) and min(line["min"]) == min(long["min"]), name
                    assert line["last"][-1] == long["last"][-1] and len(line["last"]) <= most, name
        assert valid("summary", "--json", "--top", "1000000", name) == dict(
            whole, leaks=dict(whole["leaks"], **{
                verdict: [site[2] for site in by_live if site[2] in whole["leaks"][verdict]] for verdict in ("grow", "held")})), name


def bounded_by_sort():
    whole = valid("sites", "--json", "leaks.gmt")
    for sort, figure in ("peak", "peak_bytes"), ("count", "allocations"), ("total", "allocated_bytes"):
        named = {name for name in json.dumps({key: whole[key] for key in ("leaks", "findings")}).split('"')}
        document = valid("sites", "--json", "--top", "1", "--sort", sort, "leaks.gmt")
        most = max(site[figure] for site in whole["sites"])
        assert [site for site in document["sites"] if site[figure] == most], sort
        assert all(site["id"] in named or site[figure] == most for site in document["sites"]), sort
    lines = said("export", "--format", "jsonl", "--top", "2", "leaks.gmt", "clean.gmt").splitlines()
    assert all(len(json.loads(line)["findings"]) <= 2 for line in lines) and len(lines) == 2
    several = valid("summary", "--json", "--top", "1", "rank1.gmt", "rank0.gmt")
    assert len(several["runs"]) == 2 and len(several["job"]["findings"]) == 1
    blocks = valid("blocks", "--json", "--top", "2", "leaks.gmt")
    assert len(blocks["blocks"]) == 2
    assert {block["site"] for block in blocks["blocks"]} <= {site["id"] for site in blocks["sites"]}


def exported():
    assert json.loads(said("export", "--format", "json", "leaks.gmt")) == valid("summary", "--json", "leaks.gmt")
    said("export", "--format", "json", "-o", "out.json", "leaks.gmt")
    with open("out.json", encoding="utf-8") as opened:
        assert json.load(opened)["schema_version"] == 1


def differences():
    document = valid("diff", "--json", "before.gmt", "leaks.gmt")
    changed = [site for site in document["diff"]["sites"] if site["change"] != "same"]
    assert [(site["change"], site["old_live_bytes"], site["new_live_bytes"]) for site in changed] == \
        [("grew", 10 << 20, 20 << 20)]
    grown, *others = document["diff"]["sites"]
    assert grown == changed[0], "the largest change is first"
    for name, factor in [("bytes_at_peak", 1 << 20), ("allocated_bytes", 1 << 20), ("allocations", 1)]:
        assert [grown["old_" + name], grown["new_" + name]] == [10 * factor, 20 * factor], name
    sites = {site["id"]: site for site in document["sites"]}
    for change in document["diff"]["sites"]:
        site = sites[change["new_site"]]
        assert abs(change["new_time_s"] - (site["last_s"] - site["first_s"])) < 1e-9, change
        assert change["new_bytes_at_peak"] == site["bytes_at_peak"]
    assert all(site["old_live_bytes"] == site["new_live_bytes"] for site in others)


def against_baseline():
    document = valid("check", "--json", "--leaks", "off", "--max-peak-growth", "3%", "--max-growth", "1GiB",
                     "--baseline", "before.gmt", "leaks.gmt", status=5)
    gates = {gate["gate"]: gate for gate in document["gates"]}
    growth = gates["max-peak-growth"]
    # 276 MiB against 266: 3.8 %, rounded up
    assert (growth["passed"], growth["limit"], growth["value"]) == (False, 3, 4), growth
    assert gates["max-growth"]["value"] == 20 << 20 and gates["max-growth"]["sites"] == []
    [compared] = document["baseline"]
    assert compared == valid("diff", "--json", "before.gmt", "leaks.gmt")["diff"]
    assert growth["sites"] == [compared["sites"][0]["new_site"]]
    assert "baseline" not in valid("check", "--json", "--leaks", "off", "leaks.gmt")


def plan():
    mib, params = 1 << 20, 7_000_000_000
    document = valid("plan", "--json", "--params", "7B", "--precision", "bf16", "--optimizer", "adam",
                     "--gpu", "h200", "--batch", "4", "--target-batch", "64")
    assert document["file"] is None and document["runs"] == [] and document["sites"] == []
    made = document["plan"]
    rows = {row["what"]: row["bytes"] for row in made["rows"]}
    # 2 bytes of weights and gradients, two fp32 states, an fp32 copy: 16 bytes a parameter
    assert rows["weights"] == rows["gradients"] == 2 * params
    assert rows["optimizer state"] == 8 * params and rows["master weights"] == 4 * params
    assert made["parameters"] == params and made["batch"] == 4 and made["measured"] is False
    # 34sh bytes for each of 32 layers and 4 sequences, eager attention 5as^2 more; 4sv for the logits
    assert rows["activations"] == 4 * 32 * 34 * 2048 * 4096
    eager = valid("plan", "--json", "--params", "7B", "--precision", "bf16", "--attention", "eager", "--batch", "4")
    assert {row["what"]: row["bytes"] for row in eager["plan"]["rows"]}["activations"] == \
        4 * 32 * (34 * 2048 * 4096 + 5 * 32 * 2048 ** 2)
    assert rows["logits"] == 4 * 4 * 2048 * 32000
    assert made["total_bytes"] == sum(rows.values()) == made["fixed_bytes"] + 4 * made["per_batch_bytes"]
    limit = made["capacity_bytes"]
    assert made["max_batch"] == (limit - made["fixed_bytes"]) // made["per_batch_bytes"] == 3
    assert made["kv_cache"] is None and made["accumulation"] == 22 and made["safe_batch"] <= made["max_batch"]
    for fit in made["fits"]:
        left = 100 * (fit["total_bytes"] - made["total_bytes"]) / fit["total_bytes"]
        assert abs(fit["margin_percent"] - left) < 0.01 and fit["fits"] == (left >= 15), fit
    variants = {variant["what"]: variant["total_bytes"] for variant in made["variants"]}
    assert made["total_bytes"] - variants["ZeRO-1 on 8 ranks"] == 12 * params * 7 // 8
    assert variants["ZeRO-1 on 8 ranks"] - variants["ZeRO-2 on 8 ranks"] == 2 * params * 7 // 8
    assert variants["ZeRO-2 on 8 ranks"] - variants["ZeRO-3 on 8 ranks"] == 2 * params * 7 // 8

    sharded = valid("plan", "--json", "--params", "7B", "--precision", "bf16", "--zero", "3", "--world", "8")
    rows = {row["what"]: row["bytes"] for row in sharded["plan"]["rows"]}
    assert rows["weights"] == rows["gradients"] == 2 * params // 8
    assert rows["optimizer state"] == params and rows["gathered layer"] == 2 * 2 * params // 32
    cached = valid("plan", "--json", "--params", "8B", "--precision", "bf16", "--inference", "--seq", "8192",
                   "--batch", "16")["plan"]
    rows = {row["what"]: row["bytes"] for row in cached["rows"]}
    assert rows["KV cache"] == 16 * 2 * 32 * 8 * 128 * 2 * 8192 and rows["weights"] == 16_000_000_000
    assert "optimizer state" not in rows and cached["max_batch"] is None
    token = 2 * 32 * 8 * 128 * 2
    assert cached["kv_cache"] == {"token_bytes": token, "tokens": 8192, "request_bytes": 8192 * token}
    # training's row of inference and the plan of inference are the same plan
    trained = valid("plan", "--json", "--params", "7B", "--precision", "bf16")["plan"]
    served = valid("plan", "--json", "--params", "7B", "--precision", "int8", "--inference")["plan"]
    assert {row["what"]: row["total_bytes"] for row in trained["variants"]}["inference with 8-bit weights"] \
        == served["total_bytes"]
    lora = valid("plan", "--json", "--params", "8B", "--precision", "4bit", "--trainable", "0.01")["plan"]
    rows = {row["what"]: row["bytes"] for row in lora["rows"]}
    assert rows["weights"] == round(8e9 * 4.127 / 8) and rows["adapters"] == 160_000_000
    assert rows["optimizer state"] == 640_000_000

    measured = valid("plan", "--json", "--batch", "10,20", "before.gmt", "leaks.gmt")["plan"]
    # 10 and 20 MiB of one place, the rest alike
    assert abs(measured["per_batch_bytes"] - mib) <= 4096, measured["per_batch_bytes"]
    assert measured["measured"] is True and measured["parameters"] is None


def name_without_encoding():
    with open("leaks.gmt", "rb") as opened:
        content = opened.read()
    with open(b"\xff.gmt", "wb") as opened:
        opened.write(content)
    for arguments in (["summary", "--json"], ["check", "--leaks", "off", "--json"]):
        done = subprocess.run([tool, *arguments, b"\xff.gmt"], capture_output=True, check=True)
        document = json.loads(done.stdout)
        assert validator.is_valid(document) and document["file"]["path"] == "?.gmt"


with tempfile.TemporaryDirectory() as work:
    subprocess.run([make_files, work], check=True)
    subprocess.run(["cp", os.path.join(os.path.dirname(os.path.abspath(__file__)), "suppressions"), work],
                   check=True)
    os.chdir(work)
    for command in ["summary", "leaks", "sites", "fragmentation", "oom", "timeline"]:
        for name in ["leaks", "clean", "killed", "torch", "timeline", "cut"]:
            test(f"{command} {name}", lambda c=command, n=name: valid(c, "--json", n + ".gmt"))
    for body in [no_null_bytes_as_zero, leaks, over, torch, several, cut, filters, gates, suppressed, junit, sarif,
                 csv_lines, collapsed, exported, bounded, bounded_by_sort, differences, against_baseline, plan,
                 name_without_encoding]:
        test(body.__name__, body)
    os.chdir("/")
print(f"1..{number}")
sys.exit(failures != 0)
