"""Our torch-snapshot export against PyTorch's own snapshot of the same moment, and PyTorch's viewer on ours:
compare.py NAME SAID OURS THEIRS"""
import os
import pickle
import subprocess
import sys
import tempfile
import warnings

from holds import end, equal, guarded, holds, said

BLOCK_ACTIONS = ("alloc", "free_requested")
SEGMENT_ACTIONS = ("segment_alloc", "segment_free", "segment_map", "segment_unmap")
SCRIPT = "train.py"


def snapshot(path):
    with open(path, "rb") as file:
        return pickle.load(file)


def segment_key(segment):
    return (segment["address"], segment["total_size"], segment["allocated_size"], segment["active_size"],
            segment["segment_type"], segment["is_expandable"])


def block_keys(document):
    """Every block with its address, which old snapshots give only by the sizes before it."""
    keys = []
    for segment in document["segments"]:
        address = segment["address"]
        for block in segment["blocks"]:
            keys.append((block.get("address", address), block["size"], block["state"]))
            address += block["size"]
    return sorted(keys)


def first_difference(theirs, ours):
    for i, (a, b) in enumerate(zip(theirs, ours)):
        if a != b:
            return f"at {i} of {len(theirs)} and {len(ours)}: PyTorch {a}, ours {b}"
    return f"{len(theirs)} and {len(ours)} entries"


def same(name, theirs, ours):
    holds(name, theirs == ours, f"{len(theirs)} equal" if theirs == ours else first_difference(theirs, ours))


def script_line(frames):
    return next((f["line"] for f in frames or [] if os.path.basename(f["filename"]) == SCRIPT), None)


def lines_of(document):
    return {address: script_line(block["frames"]) for address, block in
            ((b.get("address"), b) for s in document["segments"] for b in s["blocks"])
            if block["state"] == "active_allocated"}


def events(document, actions):
    return [(e["action"], e["addr"]) for e in document["device_traces"][0] if e["action"] in actions]


def compare_content(name, facts, ours, theirs):
    same(f"{name}: segments (address, size, allocated, active, type)",
         sorted(map(segment_key, theirs["segments"])), sorted(map(segment_key, ours["segments"])))
    same(f"{name}: blocks (address, size, state)", block_keys(theirs), block_keys(ours))
    for key, field in (("reserved", "total_size"), ("allocated", "allocated_size")):
        equal(f"{name}: {key} bytes", facts[key], sum(s[field] for s in ours["segments"]))
    their_lines, our_lines = lines_of(theirs), lines_of(ours)
    wrong = {a: (line, our_lines.get(a)) for a, line in their_lines.items() if our_lines.get(a) != line}
    holds(f"{name}: the script's line of every live block", not wrong,
          f"{len(their_lines) - len(wrong)} of {len(their_lines)}; {list(wrong.values())[:5]}")
    for what, actions in (("blocks", BLOCK_ACTIONS), ("segments", SEGMENT_ACTIONS)):
        same(f"{name}: events of {what} (action, address)", events(theirs, actions), events(ours, actions))
    equal(f"{name}: oom events", [e["size"] for e in theirs["device_traces"][0] if e["action"] == "oom"],
          [e["size"] for e in ours["device_traces"][0] if e["action"] == "oom"])


def compare_functions(name, ours, theirs):
    """PyTorch's viewer as a module: its own functions take ours as theirs."""
    from torch.cuda import _memory_viz as viz

    def summary(document):
        return [line for line in viz.segsum(document).splitlines()
                if line.startswith(("segments:", "total_reserved:"))]

    equal(f"{name}: _memory_viz.segsum", summary(theirs), summary(ours))
    for function in (viz.segments, viz.memory):
        weights = []
        for document in (theirs, ours):
            lines = function(document, format_flamegraph=lambda text: text).splitlines()
            weights.append(sum(int(line.rsplit(" ", 1)[1]) for line in lines))
        equal(f"{name}: _memory_viz.{function.__name__}: bytes in the flame graph", *weights)
    text = viz.compare(theirs["segments"], ours["segments"], format_flamegraph=lambda lines: lines)
    equal(f"{name}: _memory_viz.compare finds no segment of one side only", "", text)
    trace = viz.trace(ours)
    holds(f"{name}: _memory_viz.trace", " = cudaMalloc(" in trace or "segment_map" in trace,
          f"{len(trace.splitlines())} lines")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for function in (viz.trace_plot, viz.segment_plot):
            holds(f"{name}: _memory_viz.{function.__name__}", "snapshot.pickle" in function(ours), "a page")


def stand_in(folder):
    """Its flame graphs need a script that it would download; where it looks for it depends on its age."""
    for path in (f"/tmp/{os.getuid()}_flamegraph.pl", f"{folder}/.cache/flamegraph.pl"):
        if not os.path.exists(path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as file:
                file.write("#!/bin/sh\nexec cat\n")
            os.chmod(path, 0o755)
            yield path


def compare_command_line(name, ours_path):
    """The same by its command line."""
    output = f"{ours_path}.out"
    with tempfile.TemporaryDirectory() as folder:
        made = list(stand_in(folder))
        for action in ("stats", "trace", "segments", "memory", "trace_plot", "segment_plot"):
            to = [] if action in ("stats", "trace") else ["-o", output]
            done = subprocess.run([sys.executable, "-m", "torch.cuda._memory_viz", action, ours_path, *to],
                                  capture_output=True, text=True, env={**os.environ, "HOME": folder})
            size = os.path.getsize(output) if to and os.path.exists(output) else len(done.stdout)
            holds(f"{name}: python -m torch.cuda._memory_viz {action}", done.returncode == 0 and size > 0,
                  f"{size} B" if done.returncode == 0 else done.stderr.strip().splitlines()[-1:])
            if to and os.path.exists(output):
                os.remove(output)
        for path in made:
            os.remove(path)


def main(name, said_path, ours_path, theirs_path):
    facts, ours, theirs = said(said_path), snapshot(ours_path), snapshot(theirs_path)
    guarded(compare_content, name, facts, ours, theirs)
    guarded(compare_functions, name, ours, theirs)
    guarded(compare_command_line, name, ours_path)


if __name__ == "__main__":
    guarded(main, *sys.argv[1:])
    end()
