"""How the corpus's Python programs run and end: PROGRAM BEHAVIOUR [END].

With SNAPSHOT in the environment PyTorch's own history is recorded, by a clock that only work moves, and written to that
file when the work is over: what is kept is alive then, as where people call _dump_snapshot() in their scripts.
SNAPSHOT_ENTRIES is how many entries of the history are kept, SNAPSHOT_WITHOUT a key that none of them has,
SNAPSHOT_STACKS what stacks hold; with SNAPSHOT_LATE the script itself says when recording begins, by record().
"""
import os
import signal
import sys

STATUS = {"exit": 0, "exit3": 3}
SIGNALS = {"abort": signal.SIGABRT, "kill": signal.SIGKILL, "term": signal.SIGTERM, "interrupt": signal.SIGINT}


def end(how):
    """Comes back for "return" alone: then the interpreter ends, and clears the modules."""
    if how in STATUS:
        sys.exit(STATUS[how])
    if how in SIGNALS:
        signal.raise_signal(SIGNALS[how])
    if how == "_exit":
        os._exit(0)
    if how == "raise":
        raise RuntimeError("the last batch is not what was expected")


def record():
    import torch

    torch.cuda.memory._record_memory_history(stacks=os.environ.get("SNAPSHOT_STACKS", "python"), virtual_clock=True)


def with_history(behaviour, path):
    import torch

    if "SNAPSHOT_LATE" not in os.environ:
        record()
    try:
        behaviour()
    except torch.OutOfMemoryError:
        write(torch.cuda.memory, path)  # with the frames of what failed, as an observer of such errors does
    else:
        write(torch.cuda.memory, path)


def write(memory, path):
    most = int(os.environ.get("SNAPSHOT_ENTRIES", 1 << 40))
    memory._dump_snapshot(path, max_entries=most, without=os.environ.get("SNAPSHOT_WITHOUT"))


def main(behaviours):
    behaviour = behaviours[sys.argv[1].replace("-", "_")]
    if "SNAPSHOT" in os.environ:
        with_history(behaviour, os.environ["SNAPSHOT"])
    else:
        behaviour()
        end((sys.argv[2:] or ["return"])[0])
