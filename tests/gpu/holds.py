"""What the comparers of the suite `gpu` share: lines `ok NAME: figures` and `FAIL NAME: figures`."""
import json
import os
import sys

MIB, GIB = 1 << 20, 1 << 30
OWNED = {"device", "array", "async", "vmm", "graph", "managed"}

failures = 0


def holds(name, condition, figures):
    global failures
    failures += not condition
    print(f"{'ok' if condition else 'FAIL'} {name}: {figures}", flush=True)
    return bool(condition)


def equal(name, theirs, ours):
    return holds(name, theirs == ours, f"{theirs}" if theirs == ours else f"{theirs}, the report {ours}")


def within(name, theirs, ours, margin):
    return holds(name, abs(theirs - ours) <= margin, f"{theirs}, the report {ours}, margin {margin}")


def load(path):
    with open(path) as text:
        return json.load(text)


def said(path):
    """The last line that a traced program printed, as JSON."""
    with open(path) as text:
        return json.loads([line for line in text if line.startswith("{")][-1])


def frame_at(stack, script, lines=None):
    """The innermost frame in a Python file of that name, at one of those lines if given."""
    for frame in stack or []:
        if frame["kind"] == "python" and os.path.basename(frame["file"] or "") == script:
            return frame if lines is None or frame["line"] in lines else None
    return None


def anywhere(stack, script, line):
    return any(os.path.basename(f["file"] or "") == script and f["line"] == line for f in stack or [])


def place(stack, script):
    frame = frame_at(stack, script)
    if frame:
        return f"{script}:{frame['line']} {frame['function']}"
    for frame in stack or []:
        if frame["function"] and frame["file"]:
            return f"{os.path.basename(frame['file'])}:{frame['line']} {frame['function']}"
    asked = [f for f in stack or [] if not os.path.basename(f["module"] or "").startswith("libc10")]
    return (asked[0]["function"] or asked[0]["module"]) if asked else "no stack"


def sites(document, **wanted):
    return [s for s in document["sites"] if all(s[k] == v for k, v in wanted.items())]


def total(rows, key):
    return sum(row[key] or 0 for row in rows)


def finding(document, name):
    return next((f for f in document["findings"] if f["id"] == name), None)


def guarded(work, *arguments):
    """Runs a comparison; what it trips over is a failure, not the end of the others."""
    try:
        work(*arguments)
    except Exception as error:  # whatever a changed document or library brings
        holds(getattr(work, "__name__", "comparison"), False, f"{type(error).__name__}: {error}")


def end():
    sys.exit(1 if failures else 0)
