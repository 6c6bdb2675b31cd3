"""The ledger of each of a run's snapshots: ledger_rows.py REPORT FILE...

A line a file: what the driver says, what the rows add up to, the difference, and the rows.
"""
import json
import subprocess
import sys


def main():
    report = sys.argv[1]
    for path in sys.argv[2:]:
        done = subprocess.run([report, "summary", "--json", path], capture_output=True, check=True)
        for ledger in json.loads(done.stdout)["ledger"]:
            rows = [(row["what"], row.get("library") or "", row["bytes"]) for row in ledger["rows"]
                    if row["what"] != "unexplained"]
            total = sum(row[2] for row in rows)
            used = ledger["process_used_bytes"]
            print(f"ledger {path.rsplit('/', 1)[-1]} device {ledger['device']} {ledger['source']} "
                  f"reason {ledger.get('reason')}: driver {used}, rows {total}, driver less rows "
                  f"{used - total}: " + "; ".join(f"{w} {lib} {n}".replace("  ", " ")
                                                  for w, lib, n in rows))


if __name__ == "__main__":
    main()
