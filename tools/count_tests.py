#!/usr/bin/env python3
"""Counts the results of `meson test` from its JSON log and prints the closing line of ./check.

A test of bats or cmocka that prints TAP counts with each of its cases, any other as one. Lines that begin
with "score: " are shown before the closing line.
"""
import json
import pathlib
import sys


def count(log):
    passed, failed, skipped, reasons, scores = 0, 0, 0, [], []
    for line in log.read_text().splitlines():
        test = json.loads(line)
        cases = test.get("stdout") or ""
        ok = sum(l.startswith("ok ") and "# skip" not in l for l in cases.splitlines())
        bad = sum(l.startswith("not ok ") for l in cases.splitlines())
        skip = [l for l in cases.splitlines() if l.startswith("ok ") and "# skip" in l]
        result = test["result"]
        scores += [l for l in cases.splitlines() if l.startswith("score: ")]
        if result in ("SKIP",):
            skipped += 1
            last = cases.strip().splitlines()[-1:] or ["no reason given"]
            reasons.append(f"{test['name']}: {last[0]}")
        elif result in ("OK", "EXPECTEDFAIL"):
            passed += max(ok, 1)
            skipped += len(skip)
            reasons += [f"{test['name']}: {l}" for l in skip]
        else:
            passed += ok
            failed += max(bad, 1)
    return passed, failed, skipped, reasons, scores


def main():
    log = pathlib.Path(sys.argv[1]) / "meson-logs" / "testlog.json"
    if not log.exists():
        print(f"{log} is missing: no test ran", file=sys.stderr)
        print("0 passed, 1 failed, 0 skipped")
        return 1
    passed, failed, skipped, reasons, scores = count(log)
    for reason in reasons:
        print("skipped:", reason)
    print("".join(score + "\n" for score in scores), end="")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
