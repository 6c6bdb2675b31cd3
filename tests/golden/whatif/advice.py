"""Advice of `oom` from histories of several lengths: advice.py TOOL prints TAP.

Each history ends with a request of 512 MiB that the holes of twelve segments could hold together. A short one
is replayed in every way, a long one once for each setting, which the advice says.
"""
import json
import os
import pickle
import subprocess
import sys
import tempfile

from reference import MIB, Allocator, OutOfMemory

tool = os.path.abspath(sys.argv[1])


def fragmented(requests):
    """Twelve segments of 100 MiB with a block of 4 MiB in each, after so many requests that were freed."""
    allocator = Allocator(limit=1300 * MIB)
    large, small = [], []
    for _ in range(12):
        allocator.give_back(allocator.request(100 * MIB, 0))
        large.append(allocator.request(95 * MIB, 0))
        small.append(allocator.request(4 * MIB, 0))
    for block in large:
        allocator.give_back(block)
    for _ in range(requests):
        allocator.give_back(allocator.request(30 * MIB, 0))
    allocator.operation = 1
    try:
        allocator.request(512 * MIB, 0)
    except OutOfMemory:
        return allocator.snapshot(small, "")
    raise AssertionError("the request was served")


def advice(requests):
    with open("made.pickle", "wb") as file:
        pickle.dump(fragmented(requests), file)
    done = subprocess.run([tool, "oom", "--json", "made.pickle"], capture_output=True, text=True, check=True,
                          timeout=60)
    (oom,) = json.loads(done.stdout)["ooms"]
    assert oom["verdict"] == "fragmented", oom["verdict"]
    return "\n".join(oom["advice"])


def check(number, name, held):
    print(f"{'' if held else 'not '}ok {number} - {name}")
    return held


with tempfile.TemporaryDirectory() as directory:
    os.chdir(directory)
    short, long = advice(10), advice(100_001)
    os.chdir("/")
results = [
    check(1, "a setting that would have saved the run is recommended with its figures, of both lengths",
          all("expandable_segments:True: reserved 1.1" in text and "would have fitted" in text
              for text in (short, long))),
    check(2, "of a long history the advice says that each setting was replayed once, and how to learn more",
          "one replay each; gpumem-report whatif" in long and "one replay" not in short),
]
print(f"1..{len(results)}")
sys.exit(not all(results))
