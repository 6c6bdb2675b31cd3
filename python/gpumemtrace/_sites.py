"""The allocation sites of one test, from a copy of the tracer's file, as text of a failure."""
import json
import os
import subprocess
import tempfile
from typing import Callable, Dict, List

import gpumemtrace
from gpumemtrace import _files

SITES, FRAMES = 5, 20
RUNNERS = ("/_pytest/", "/pluggy/", "/pytest/__main__.py")  # frames of these and below say nothing
KEPT_NAME = 255


def mark_name(name: str, number: int) -> str:
    """The number-th mark of a name, as --since takes it."""
    kept = name.encode("utf-8", "replace")[:KEPT_NAME].decode("utf-8", "ignore")
    return f"{kept}#{number}"


def _document(*options: str) -> Dict:
    """The report's document on this process up to now. RuntimeError in a sentence."""
    with tempfile.TemporaryDirectory(prefix="gpumem-") as folder:
        path = os.path.join(folder, "copy.gmt")
        if not gpumemtrace.snapshot(path):
            raise RuntimeError("there was no CUDA call yet")
        environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        done = subprocess.run(_files.report_command() + ["leaks", "--json", *options, path],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
    try:
        return json.loads(done.stdout)
    except ValueError:
        raise RuntimeError(done.stderr.decode(errors="replace").strip() or "the report is empty") from None


def gpu_used() -> bool:
    """Whether this process used a GPU, as far as the tracer knows."""
    try:
        return bool(_document()["devices"])
    except (OSError, RuntimeError):
        return False


def _frame(frame: Dict) -> str:
    place = frame["file"] or frame["module"] or ""
    if frame["line"]:
        place += f":{frame['line']}"
    return f"    {frame['function'] or '?'}" + (f" ({place})" if place else "")


def _frames(site: Dict) -> List[Dict]:
    """The frames of the test, innermost first, without pytest's own."""
    frames: List[Dict] = []
    for frame in site["stack"]:
        if any(runner in (frame["file"] or "") for runner in RUNNERS):
            break
        frames.append(frame)
    return frames


def _folded(site: Dict, count: int) -> str:
    """The stack in one line, outermost first, and the bytes, as flame graph tools read it."""
    names = [(frame["function"] or "?").replace(";", ",") for frame in reversed(_frames(site))]
    return f"    {';'.join(names)} {count}"


def _stack(site: Dict) -> List[str]:
    lines = [_frame(frame) for frame in _frames(site)]
    more = len(lines) - FRAMES
    return lines[:FRAMES] + ([f"    ... {more} more"] if more > 0 else [])


def _listed(mark: str, device: int, size: Callable[[int], str], bytes_of: Callable[[Dict, Dict], int],
            title: str) -> str:
    try:
        document = _document("--since", mark)
    except (OSError, RuntimeError) as error:
        return f"Its allocation sites cannot be shown: {error}"
    framework = any(site["level"] == "torch" for site in document["sites"])
    rows = []
    for site in document["sites"]:
        # what a framework reserved for its blocks is not what the test took
        if site["device"] == device and not (framework and site["verdict"] == "cached"):
            rows.append((bytes_of(site, document), site))
    rows = sorted((row for row in rows if row[0] > 0), key=lambda row: -row[0])
    lines = [title]
    for count, site in rows[:SITES]:
        lines += [f"  {size(count)}, {site['kind']} memory:"] + _stack(site)
    if len(rows) > SITES:
        lines.append(f"  and {len(rows) - SITES} more sites")
    if rows:
        lines.append("  Folded, with bytes:")
        lines += [_folded(site, count) for count, site in rows[:SITES]]
    return "\n".join(lines)


def left(mark: str, device: int, size: Callable[[int], str]) -> str:
    """What was allocated since the mark and is still there."""
    return _listed(mark, device, size, lambda site, document: site.get("since_bytes") or 0,
                   "Allocated in the test and still there:")


def taken(mark: str, device: int, size: Callable[[int], str]) -> str:
    """What sites that allocated since the mark held at most; a long session's windows are of several tests."""
    name, _, number = mark.rpartition("#")

    def most(site: Dict, document: Dict) -> int:
        times = [row["time_s"] for row in document["marks"] if row["name"] == name]
        begin = times[int(number) - 1] if len(times) >= int(number) else 0
        if site["last_s"] is None or site["last_s"] < begin or not site["windows"]:
            return 0
        return max((window["max_bytes"] or 0 for window in site["windows"]
                    if window["start_s"] is not None and window["start_s"] >= begin),
                   default=site["windows"][-1]["max_bytes"] or 0)

    return _listed(mark, device, size, most, "Sites that allocated in the test, with the most that each held at once:")
