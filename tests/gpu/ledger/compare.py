"""The ledger against the program's own readings: compare.py OUT

Of each program PROGRAM.plain.said holds its steps without the shim, PROGRAM.said and PROGRAM.json those with it. A step is a line
`step TAG NVML FREE SECONDS TEXT` (ledger_steps.c); the last line says what NVML reported for the process at the end.
"""
import glob
import json
import os
import sys

MIB = 1 << 20
ROWS = {  # the tags of steps, and the ledger's rows that they are to add up to
    "graphs": ("CUDA graphs",),
    "streams": ("streams",),
    "launches": ("first launches of kernels",),
    "contexts": ("context",),
    "modules": ("modules and limits",),
    "limits": ("modules and limits",),
}
TOLERANCE = 2 * MIB


def lines(path):
    return [line.rstrip("\n").split("\t") for line in open(path)] if os.path.exists(path) else []


def number(text):
    return None if text == "-" else int(text)


def tags(said):
    sums = {}
    for line in said:
        if line[0] == "step" and number(line[2]) is not None:
            sums[line[1]] = sums.get(line[1], 0) + number(line[2])
    return sums


def compare_pool(name, document, captures, reserved, used):
    """The private pool of captures, by PyTorch's own snapshot, and what three captures told of the rest."""
    pools = [pool for pool in document["graph_pools"] if pool["private"]]
    found = [(pool["captures"], pool["reserved_bytes"], pool["used_bytes"]) for pool in pools]
    good = found == [(captures, reserved, used)]
    print(f"{'ok' if good else 'FAIL'} pool {name}: {captures} captures with {reserved} B, {used} B in use, by PyTorch; {found} in the report")
    for pool in pools:
        costs = [entry["taken_bytes"] + entry["executable_bytes"] for entry in pool["each"]]
        if len(costs) > 3:
            predicted = sum(costs[:3]) + (len(costs) - 3) * sum(costs[1:3]) / 2
            print(f"   {name} after three captures {predicted / MIB:.1f} MiB were to be expected of {len(costs)}, {sum(costs) / MIB:.1f} MiB they took")


def compare(name, out):
    said, plain = lines(f"{out}/{name}.said"), lines(f"{out}/{name}.plain.said")
    document = json.load(open(f"{out}/{name}.json"))
    end = next((int(line[1]) for line in said if line[0] == "end"), -1)
    for run, of in (("plain", plain), ("traced", said)):
        print(f"   {name} {run}: " + ", ".join(f"{tag} {bytes / MIB:.1f} MiB" for tag, bytes in tags(of).items()))
    if end < 0:
        print(f"skip ledger {name}: NVML does not know the process")
        return
    ledger = [entry for entry in document["ledger"] if entry["device"] == 0]
    if not ledger:
        print(f"FAIL ledger {name}: there is no ledger")
        return
    rows = {}
    for row in ledger[0]["rows"]:
        rows[row["what"]] = rows.get(row["what"], 0) + row["bytes"]
    figures = ", ".join(f"{what} {bytes / MIB:.1f}" for what, bytes in rows.items())
    missed = end - ledger[0]["process_used_bytes"]
    unexplained = ledger[0]["unexplained_bytes"]
    good = abs(missed) <= TOLERANCE and abs(unexplained) <= TOLERANCE
    print(f"{'ok' if good else 'FAIL'} ledger {name}: {end / MIB:.1f} MiB at the end by NVML, {missed / MIB:+.1f} more than the last "
          f"sample, unexplained {unexplained / MIB:.1f}; rows in MiB: {figures}")
    for line in (line for line in said if line[0] == "pool"):
        compare_pool(name, document, *map(int, line[1:]))
    wanted = {}
    for tag, bytes in tags(said).items():
        if tag in ROWS:
            wanted.setdefault(ROWS[tag], []).append(bytes)
    for names, parts in wanted.items():
        if "context" in names:
            continue  # the first one's is before the first step
        off = sum(rows.get(what, 0) for what in names) - sum(parts)
        print(f"{'ok' if abs(off) <= TOLERANCE else 'differs'} row {name} {names[0]}: {off / MIB:+.1f} MiB beside the steps' "
              f"{sum(parts) / MIB:.1f}")
    for finding in document["findings"]:
        if finding["id"] in ("cost.grow", "graphs.cost", "context.several", "coverage", "ledger.unexplained"):
            print(f"   {name} finding: {finding['id']}: {finding['title']}; {finding['evidence']}")
    if tags(plain).get("nothing"):
        print(f"differs nothing {name}: {tags(plain)['nothing'] / MIB:.1f} MiB were taken where nothing is said to be")


folder = sys.argv[1]
for path in sorted(glob.glob(f"{folder}/*.json")):
    try:
        compare(os.path.basename(path)[:-5], folder)
    except (KeyError, ValueError, IndexError) as error:
        print(f"FAIL ledger {path}: {type(error).__name__} {error}")
