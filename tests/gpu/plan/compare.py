"""What `plan` says of two small runs against what was found:
compare.py NAME PLAN-DOCUMENT SAID-BY-THE-LARGEST SAID-BY-THE-SMALL"""
import sys

from holds import end, equal, guarded, holds, load, said

PERCENT = 5


def plan(name, path, largest, small):
    document = load(path)["plan"]
    found, predicted = said(largest)["largest_batch"], document["max_batch"]
    off = 100 * (predicted - found) / found
    holds(f"{name}: the largest batch", abs(off) <= PERCENT,
          f"predicted {predicted}, found {found} ({off:+.1f} %), {document['safe_batch']} with the margin")
    equal(f"{name}: the rows add up", document["total_bytes"], sum(row["bytes"] for row in document["rows"]))
    holds(f"{name}: the batch with fragmentation and margin went through", document["safe_batch"] <= found,
          document["safe_batch"])
    # Adam keeps two fp32 numbers for each parameter
    states = sum(row["bytes"] for row in document["rows"] if row["what"] == "optimizer state")
    wanted = 8 * said(small)["parameters"]
    holds(f"{name}: optimizer state", abs(states - wanted) < 0.02 * wanted, f"{states} B measured, {wanted} B by rule")
    print(f"      fixed {document['fixed_bytes']} B, {document['per_batch_bytes']} B for each sample, "
          f"fragmentation {document['fragmentation_percent']:.1f} %")
    for row in document["rows"]:
        print(f"      {row['what']}: {row['bytes']} B, {row['rule']}")


if __name__ == "__main__":
    guarded(plan, *sys.argv[1:])
    end()
