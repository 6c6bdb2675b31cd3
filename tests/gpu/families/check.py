#!/usr/bin/env python3
"""Holds the report of a family program against what the program said of itself (family.h).

check.py NAME SAID DOCUMENT: prints a line `NAME: PASS`, `NAME: SKIP reason` or `NAME: FAIL ...` for each
difference, and facts as they are. Status 1 after a difference, 77 when skipped.

Paths, parts separated by dots:
  usage.KIND.DEVICE.FIELD  totals.DEVICE.FIELD  pool.TYPE.DEVICE.FIELD  vmm.DEVICE.FIELD
  implicit.CAUSE.DEVICE.FIELD                             sums over the rows; 0 where there is no row
  ledger.WHAT.DEVICE                                      bytes of the ledger's rows named so; unexplained
  implicit  errors  sites                                 how many records there are (sites: live)
  errors.TYPE.FIELD  site.FUNCTION.FIELD  finding.ID      sums; a site is FUNCTION's if a frame is
  error_stack.TYPE.FUNCTION  error_first.TYPE.FUNCTION    count of errors whose stack has FUNCTION
  victim.FINDING.FUNCTION  evidence.FINDING.FUNCTION      findings whose advice, evidence names FUNCTION
  leaks.FIELD  file.complete  process.end.VALUE  ooms.NUMBER.FIELD
"""
import json
import sys

HOST = {"host": None}
TABLES = {"usage": "kind", "pool": "pool", "implicit": "cause"}
LISTS = {"usage": "usage", "pool": "pools", "implicit": "implicit_frees"}


def device(text):
    return HOST[text] if text in HOST else int(text)


def has(stack, function):
    return any(function == (frame["function"] or "").split("(")[0] for frame in stack or [])


def table(document, parts):
    name, kind, where, field = parts
    rows = [r for r in document[LISTS[name]]
            if r[TABLES[name]] == kind and r["device"] == device(where)]
    return sum(r[field] or 0 for r in rows)


def per_device(document, parts):
    name, where, field = parts
    return sum(r[field] or 0 for r in document[name] if r["device"] == device(where))


def ledger(document, parts):
    if parts[1] == "unexplained":
        return sum(e["unexplained_bytes"] for e in document["ledger"] if e["device"] == device(parts[2]))
    rows = [r for entry in document["ledger"] if entry["device"] == device(parts[2])
            for r in entry["rows"]]
    return sum(r["bytes"] for r in rows if r["what"].replace(" ", "_") == parts[1])


def site(document, parts):
    return sum(s[parts[2]] for s in document["sites"] if has(s["stack"], parts[1]))


def errors(document, parts):
    if len(parts) == 1:
        return len(document["errors"])
    return sum(e[parts[2]] for e in document["errors"] if e["type"] == parts[1])


def error_stack(document, parts):
    stack = "stack" if parts[0] == "error_stack" else "first_free_stack"
    return sum(e["count"] for e in document["errors"]
               if e["type"] == parts[1] and has(e[stack], parts[2]))


def finding(document, parts):
    return sum(1 for f in document["findings"] if f["id"] == ".".join(parts[1:]))


def victim(document, parts):
    wanted = ".".join(parts[1:-1])
    lines = [f["advice"] if parts[0] == "victim" else [f["evidence"]]
             for f in document["findings"] if f["id"] == wanted]
    return sum(1 for said in lines if any(parts[-1] in line for line in said))


def single(document, parts):
    value = document[parts[0]][parts[1]]
    return int(value == parts[2]) if len(parts) == 3 else int(value or 0)


def value_at(document, path):
    parts = path.split(".")
    if path == "implicit":
        return len(document["implicit_frees"])
    if parts[0] == "ooms":
        return document["ooms"][int(parts[1])][parts[2]]
    if path == "sites":
        return sum(1 for s in document["sites"] if s["live_count"])
    handlers = {"totals": per_device, "vmm": per_device, "site": site, "errors": errors,
                "error_stack": error_stack, "error_first": error_stack, "finding": finding, "ledger": ledger,
                "victim": victim, "evidence": victim, "leaks": single, "file": single, "process": single}
    return handlers.get(parts[0], table)(document, parts)


def main():
    name, said, path = sys.argv[1:]
    failed = 0
    with open(said) as lines, open(path) as text:
        document = json.load(text)
        for line in lines:
            words = line.split()
            if words[0] == "skip":
                print(f"{name}: SKIP {' '.join(words[1:])}")
                return 77
            if words[0] == "fact":
                print(f"{name}: {line.rstrip()}")
            if words[0] not in "=~":
                continue
            wanted, margin = int(words[2]), int(words[3]) if words[0] == "~" else 0
            found = value_at(document, words[1])
            if abs(found - wanted) > margin:
                within = f" within {margin}" if margin else ""
                print(f"{name}: FAIL {words[1]}: the program says {wanted}{within}, the report {found}")
                failed = 1
    if not failed:
        print(f"{name}: PASS")
    return failed


sys.exit(main())
