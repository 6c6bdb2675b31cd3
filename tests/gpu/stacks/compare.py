"""Sites, categories and sums of a report against what the traced script says:
compare.py torch|cupy|jax SAID DOCUMENT. After the checks, the top sites of the peak, for quoting."""
import sys

from holds import (MIB, OWNED, anywhere, end, equal, frame_at, guarded, holds, load, place, said, sites, total,
                   within)

SCRIPTS = {"torch": "train_torch.py", "cupy": "cupy_script.py", "jax": "jax_script.py"}
TOP = 12


def of_device(rows):
    return [row for row in rows if row["device"] == 0]


def top_of_peak(document, level):
    found = [s for s in of_device(document["sites"]) if s["level"] == level and s["bytes_at_peak"]]
    return sorted(found, key=lambda s: -s["bytes_at_peak"])


def print_top(found, script):
    for s in found[:TOP]:
        print(f"      {s['bytes_at_peak']:>13,} B  {s['category'] or '-':<16} {s['phase'] or '-':<9} "
              f"{s['library'] or '-':<20} {place(s['stack'], script)}")


def category(document, name, key):
    rows = [r for r in of_device(document["categories"]) if r["level"] == "torch" and r["category"] == name]
    return total(rows, key)


def in_torch(stack):
    """A frame of PyTorch with a place: a Python file and line, or a library and a function's name."""
    return any(("/torch/" in (f["file"] or "") and f["line"]) or
               ((f["module"] or "").startswith("libtorch") and f["function"]) for f in stack or [])


def torch_categories(facts, document):
    peak = document["torch"][0]["allocated_peak_bytes"]
    equal("torch: peak of the blocks", facts["allocated_peak"], peak)
    rows = [r for r in of_device(document["categories"]) if r["level"] == "torch"]
    equal("torch: categories add up to the peak", peak, total(rows, "bytes_at_peak"))
    equal("torch: categories add up to what is allocated now", facts["allocated"], total(rows, "current_bytes"))
    equal("torch: sites add up to the peak", peak, total(top_of_peak(document, "torch"), "bytes_at_peak"))
    for name in ("weights", "gradients", "optimizer state"):
        equal(f"torch: {name} now, by the blocks of the script's tensors", facts[name]["blocks"],
              category(document, name, "current_bytes"))
        print(f"      {name}: {facts[name]['count']} tensors, {facts[name]['rounded']} B rounded to 512, "
              f"{facts[name]['blocks']} in blocks")
    print("      at the peak: " + ", ".join(f"{r['category']} {r['bytes_at_peak']}" for r in sorted(
        rows, key=lambda r: -r["bytes_at_peak"])))


def compare_torch(facts, document, script):
    torch_categories(facts, document)
    found = top_of_peak(document, "torch")
    top = found[:TOP]
    mine = [s for s in top if frame_at(s["stack"], script)]
    holds(f"torch: top {TOP} sites of the peak with a line of the script", len(mine) >= 8, f"{len(mine)} sites")
    holds("torch: and with a place in torch", sum(in_torch(s["stack"]) for s in top) >= 8,
          f"{sum(in_torch(s['stack']) for s in top)} sites")
    attention = total([s for s in found if anywhere(s["stack"], script, facts["attention_line"])],
                      "bytes_at_peak")
    within(f"torch: bytes at the peak of {script}:{facts['attention_line']}", facts["attention_bytes"],
           attention, 12 * MIB)
    kept = [s for s in sites(document, verdict="grow")]
    holds("torch: nothing grows", not kept, [place(s["stack"], script) for s in kept])
    return found


def compare_pool(kind, facts, document, script, module, pool_bytes):
    found = top_of_peak(document, "driver")
    owned = [s for s in found if s["kind"] in OWNED]
    peak = document["totals"][0]["peak_bytes"]
    equal(f"{kind}: sites add up to the peak", peak, total(owned, "bytes_at_peak"))
    rows = [r for r in of_device(document["categories"]) if r["level"] == "driver"]
    equal(f"{kind}: categories add up to the peak", peak, total(rows, "bytes_at_peak"))
    pool = [s for s in sites(document, level="driver", device=0) if s["stack"] and
            module in (s["stack"][0]["module"] or "")]
    equal(f"{kind}: bytes of the pool", pool_bytes, total(pool, "live_bytes"))
    table = [s for s in found if anywhere(s["stack"], script, facts["table_line"])]
    holds(f"{kind}: the table of {facts['table']} B is at {script}:{facts['table_line']}",
          total(table, "bytes_at_peak") >= facts["table"], f"{total(table, 'bytes_at_peak')} B")
    mine = [s for s in found[:4] if frame_at(s["stack"], script)]
    holds(f"{kind}: the largest sites of the peak with a line of the script", len(mine) >= min(3, len(found)),
          f"{len(mine)} of {len(found[:4])}")
    return found


def main(kind, said_path, path):
    facts, document, script = said(said_path), load(path), SCRIPTS[kind]
    found = []
    if kind == "torch":
        found = compare_torch(facts, document, script)
    elif kind == "cupy":
        found = compare_pool(kind, facts, document, script, "cupy", facts["pool_total"])
    else:
        found = compare_pool(kind, facts, document, script, "xla_cuda_plugin", facts["pool_bytes"])
    print_top(found, script)


if __name__ == "__main__":
    guarded(main, *sys.argv[1:])
    end()
