"""The report of an attached program: check.py KIND ALONE SAID DOCUMENT NVML

ALONE and SAID are what the program printed undisturbed and attached, NVML the process's bytes when the period began
and when the leak was complete, by nvidia-smi in MiB. Prints `ok NAME: figures` or `FAIL NAME: figures`."""
import json
import pathlib
import sys

kind, alone, said, document, nvml = sys.argv[1:]
alone, said = (pathlib.Path(name).read_text().strip() for name in (alone, said))
document = json.loads(pathlib.Path(document).read_text())
first, last = map(int, pathlib.Path(nvml).read_text().split())


def tell(good, name, figures):
    print(f"{'ok' if good else 'FAIL'} {kind} {name}: {figures}")


tell(alone == said and said.startswith("digest"), "results", f"{said} (undisturbed: {alone})")
tell(document["process"]["end"] == "detached" and document["tracer"]["period"]["attached"], "period",
     json.dumps(document["tracer"]["period"]))
planted = [site for site in document["sites"]
           if any(frame["kind"] == "python" and frame["function"] == "planted" for frame in site["stack"])]
lines = {f"{pathlib.Path(frame['file']).name}:{frame['line']}" for site in planted for frame in site["stack"]
         if frame["function"] == "planted"}
count = int(said.rpartition(" ")[2])
live = max((site["live_bytes"] for site in planted), default=0)
if kind == "cupy_pool":  # the pool hands out memory that it holds, and the file says so
    tell(any("pool" in text for text in document["tracer"]["period"]["not_seen"]), "not seen",
         document["tracer"]["period"]["not_seen"])
else:
    tell(live >= count << 20 and len(lines) == 1, "planted", f"{live} bytes live of {count} MiB, at {sorted(lines)}")
ledger = document["ledger"][0] if document["ledger"] else {}
gained = document["totals"][0]["physical_bytes"] if document["totals"] else 0
rise = (last - first) << 20
tell(abs(gained - rise) <= 4 << 20, "NVML", f"tracked {gained}, NVML's rise {rise} (in MiB steps), before "
     f"{ledger.get('before_bytes')}, unexplained {ledger.get('unexplained_bytes')}")
