"""Blocks of code under gpumemtrace.watch: what is expected is counted from the calls that stand here."""
import sys

import gpumemtrace
from gpu import MIB, allocate, free, pin, replay

kept = []


def figures(block):
    return block.allocated_bytes, block.retained_bytes, block.peak_bytes


def nested():
    with gpumemtrace.watch("first") as first:  # before any CUDA call: there is no file yet
        old = allocate(MIB)
    with gpumemtrace.watch("outer") as outer:
        free(old)
        with gpumemtrace.watch("inner") as inner:
            free(allocate(8 * MIB))
            for _ in range(3):
                kept.append(allocate(MIB))
        kept.append(allocate(2 * MIB))
    assert figures(first) == (MIB, MIB, MIB), figures(first)
    assert figures(inner) == (11 * MIB, 3 * MIB, 8 * MIB), figures(inner)
    assert figures(outer) == (13 * MIB, 4 * MIB, 7 * MIB), figures(outer)  # 8 MiB beside the MiB from before
    assert outer.devices[0] == gpumemtrace.Figures(13 * MIB, 5, 4 * MIB, 7 * MIB)
    assert sum(site.retained_bytes for site in outer.sites) == 4 * MIB
    assert [(site.retained_bytes, site.allocated_bytes, site.allocations) for site in outer.sites] == [
        (3 * MIB, 3 * MIB, 3), (2 * MIB, 2 * MIB, 1), (0, 8 * MIB, 1), (-MIB, 0, 0)]
    assert "watch.py:" in str(inner) and "kept.append(allocate(MIB))" in str(inner), str(inner)
    assert gpumemtrace.peak_bytes() == 8 * MIB, "a block took the program's own peak away"
    gpumemtrace.reset_peak()
    with gpumemtrace.watch():
        free(allocate(MIB))
    assert gpumemtrace.peak_bytes() == 6 * MIB


def own_reset():
    """The program's reset_peak within a block takes nothing from the block."""
    with gpumemtrace.watch() as block:
        free(allocate(4 * MIB))
        gpumemtrace.reset_peak()
        free(allocate(MIB))
    assert block.peak_bytes == 4 * MIB and gpumemtrace.peak_bytes() == MIB


def nothing():
    kept.append(allocate(1))
    with gpumemtrace.watch("idle") as block:
        pass
    assert figures(block) == (0, 0, 0) and block.sites == [] and block.devices == {}
    assert str(block) == "idle: no GPU memory was allocated or freed"


def no_call():
    with gpumemtrace.watch("idle") as block:
        pass
    assert figures(block) == (None, None, None) and str(block) == "idle: not measured: there was no CUDA call"


def pinned():
    kept.append(allocate(1))
    with gpumemtrace.watch("loader") as block:
        kept.append(pin(MIB))
    assert figures(block) == (0, 0, 0), "pinned memory is no GPU's"
    assert block.devices == {-1: gpumemtrace.Figures(MIB, 1, MIB, None)}
    assert str(block).startswith("loader, pinned host memory: allocated 1.0 MiB in 1 call, retained 1.0 MiB\n")


def torch():
    """Of what PyTorch reserves only the blocks that it hands out count, as in its own figures."""
    begin = f"S 1 {20 * MIB}\nA 2 1 0 {MIB} 0\n"
    step = (f"S 3 {20 * MIB}\nA 4 3 0 {4 * MIB} 1\nD 4\nA 5 3 0 {3 * MIB} 1\n"
            f"S 6 {20 * MIB}\nA 7 6 0 {2 * MIB} 2\nD 7\nF 6\n")
    with gpumemtrace.watch("all") as whole:
        replay(begin)
        with gpumemtrace.watch("step") as block:
            replay(step)
    # A segment counts from its allocation to its first block, so the peak may be that of the second one.
    assert (block.allocated_bytes, block.retained_bytes) == (9 * MIB, 3 * MIB), figures(block)
    assert (whole.allocated_bytes, whole.retained_bytes) == (10 * MIB, 4 * MIB), figures(whole)


def error():
    try:
        with gpumemtrace.watch("failed") as block:
            kept.append(allocate(MIB))
            raise KeyError("as it is")
    except KeyError:
        pass
    assert block.retained_bytes == MIB


def stopped():
    kept.append(allocate(MIB))
    with gpumemtrace.watch("a") as block:
        gpumemtrace.stop()
    assert "sleeps" in block.reason and block.sites == [] and str(block).startswith("a: not measured: ")
    gpumemtrace.start()
    with gpumemtrace.watch("b") as block:  # the period begins with the call in it, and with empty tables
        kept.append(allocate(2 * MIB))
    assert figures(block) == (2 * MIB, 2 * MIB, 2 * MIB), figures(block)
    with gpumemtrace.watch("c") as block:
        gpumemtrace.stop()
        gpumemtrace.start()
        kept.append(allocate(MIB))
    assert str(block) == "c: not measured: the tracer was stopped and started in the block"


def absent():
    with gpumemtrace.watch("a") as block:
        kept.append(allocate(MIB))
    assert figures(block) == (None, None, None) and block.sites == [] and block.devices == {}
    assert "gpumemtrace run" in block.reason


def no_tool():
    with gpumemtrace.watch("a") as block:
        kept.append(allocate(MIB))
    assert str(block).startswith("a: not measured: the report's tool cannot be started: gpumem-report is neither")


globals()[sys.argv[1]]()
