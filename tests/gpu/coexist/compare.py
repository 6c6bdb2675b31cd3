"""The file of a program that ran under another tool: compare.py NAME PLAIN SAID DOCUMENT"""
import sys

from holds import end, equal, guarded, holds, load, said


def main(name, plain_path, said_path, path):
    plain, facts, document = said(plain_path), said(said_path), load(path)
    books = ("live", "peak", "pinned", "leaks")
    equal(f"{name}: the program's result", [plain[key] for key in books], [facts[key] for key in books])
    usage = {row["kind"]: row for row in document["usage"]}
    equal(f"{name}: live bytes", facts["live"], document["totals"][0]["current_bytes"])
    equal(f"{name}: peak bytes", facts["peak"], document["totals"][0]["peak_bytes"])
    equal(f"{name}: pinned bytes", facts["pinned"], usage["pinned"]["current_bytes"])
    equal(f"{name}: leaked blocks", facts["leaks"], usage["device"]["current_count"])
    equal(f"{name}: the file", [True, True, "exit"], [document["file"]["complete"],
          document["file"]["clean_exit"], document["process"]["end"]])
    leaking = [s for s in document["sites"] if s["live_count"] and s["kind"] == "device"]
    named = sum(any((f["function"] or "").startswith("leak_here") for f in s["stack"] or []) for s in leaking)
    holds(f"{name}: the leak's function is in the stack", named, f"{named} of {len(leaking)} sites")


if __name__ == "__main__":
    guarded(main, *sys.argv[1:])
    end()
