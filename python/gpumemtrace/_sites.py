"""The allocation sites of one test, from a copy of the tracer's file, as text of a failure."""
import json
import os
import subprocess
import tempfile
from typing import Callable, Dict, List, Tuple

import gpumemtrace
from gpumemtrace import _files

SITES, FRAMES = 5, 20
RUNNERS = ("/_pytest/", "/pluggy/", "/pytest/__main__.py")  # frames of these and below say nothing
KEPT_NAME = 255


def mark_name(name: str, number: int) -> str:
    """The number-th mark of a name, as --since takes it."""
    kept = name.encode("utf-8", "replace")[:KEPT_NAME].decode("utf-8", "ignore")
    return f"{kept}#{number}"


def read(path: str, *options: str) -> Dict:
    """The document of a file, as the report's tool writes it. RuntimeError in a sentence."""
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    try:
        done = subprocess.run(_files.report_command() + ["leaks", "--json", *options, path],
                              env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        return json.loads(done.stdout)
    except OSError as error:
        raise RuntimeError(f"the report's tool cannot be started: {error}") from None
    except ValueError:
        raise RuntimeError(done.stderr.decode(errors="replace").strip() or "the report is empty") from None


def _document(*options: str) -> Dict:
    """The report's document on this process up to now. OSError, RuntimeError in a sentence."""
    with tempfile.TemporaryDirectory(prefix="gpumem-") as folder:
        path = os.path.join(folder, "copy.gmt")
        if not gpumemtrace.snapshot(path):
            raise RuntimeError("there was no CUDA call yet")
        return read(path, *options)


def _reserves(site: Dict) -> bool:
    """Whether PyTorch's allocator took the memory of the driver to divide it into blocks."""
    return site["level"] == "driver" and (site["verdict"] == "cached" or any(
        os.path.basename(frame["module"] or "").startswith("libc10_cuda") for frame in site["stack"]))


def in_use(document: Dict) -> List[Dict]:
    """The sites whose memory the program uses: where PyTorch's blocks are known, these in the place of its reserve."""
    divided = {site["device"] for site in document["sites"] if site["level"] == "torch"}
    return [site for site in document["sites"] if not (site["device"] in divided and _reserves(site))]


def gpu_used() -> bool:
    """Whether this process used a GPU, as far as the tracer knows."""
    try:
        return bool(_document()["devices"])
    except (OSError, RuntimeError):
        return False


def frame_text(frame: Dict) -> str:
    place = frame["file"] or frame["module"] or ""
    if frame["line"]:
        place += f":{frame['line']}"
    return (frame["function"] or "?") + (f" ({place})" if place else "")


def own_frames(frames: List[Dict], runners: Tuple[str, ...]) -> List[Dict]:
    """The frames of the test or cell, innermost first, without those of what runs it."""
    own: List[Dict] = []
    for frame in frames:
        if any(runner in (frame["file"] or "") for runner in runners):
            break
        own.append(frame)
    return own


def _folded(site: Dict, count: int) -> str:
    """The stack in one line, outermost first, and the bytes, as flame graph tools read it."""
    names = [(frame["function"] or "?").replace(";", ",") for frame in reversed(own_frames(site["stack"], RUNNERS))]
    return f"    {';'.join(names)} {count}"


def _stack(site: Dict) -> List[str]:
    lines = ["    " + frame_text(frame) for frame in own_frames(site["stack"], RUNNERS)]
    more = len(lines) - FRAMES
    return lines[:FRAMES] + ([f"    ... {more} more"] if more > 0 else [])


def _listed(mark: str, device: int, size: Callable[[int], str], bytes_of: Callable[[Dict, Dict], int],
            title: str) -> str:
    try:
        document = _document("--since", mark)
    except (OSError, RuntimeError) as error:
        return f"Its allocation sites cannot be shown: {error}"
    rows = [(bytes_of(site, document), site) for site in in_use(document) if site["device"] == device]
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
