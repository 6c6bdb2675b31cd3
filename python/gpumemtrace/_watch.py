"""``watch``: what a block of code allocated, retained and peaked at, with the sites that did it."""
import linecache
import os
import tempfile
from typing import Any, Callable, Dict, List, NamedTuple, Optional

from gpumemtrace import _peaks, _shim, _sites
from gpumemtrace._size import format_size

HOST = -1
FRAMES, TEXT = 3, 50  # of each site that the report shows: frames, and the characters of their lines
RUNNERS = ("/IPython/", "/ipykernel/", "/gpumemtrace/_magic.py")  # frames of these and below say nothing of a cell
ABSENT = ("the tracer is not in this process: start the program, or Jupyter, with `gpumemtrace run` "
          "(gpumemtrace run -m jupyter lab)")
ASLEEP = "the tracer sleeps or is switched off: gpumemtrace.start() wakes it"
NO_CALL = "there was no CUDA call"


class Figures(NamedTuple):
    """Of a device; -1 is pinned host memory, whose peak is not known (None)."""
    allocated_bytes: int  # in the block, whatever was freed since
    allocations: int
    retained_bytes: int  # in use at the end beyond what was in use before; negative where more was freed
    peak_bytes: Optional[int]  # the most in use within the block, beyond what was in use before


class SiteFigures(NamedTuple):
    """Of one call stack, one device and one kind of memory."""
    allocated_bytes: int
    allocations: int
    retained_bytes: int
    device: int
    kind: str
    stack: List[Dict[str, Any]]  # frames of the report's JSON, innermost first


def _period(document: Dict[str, Any]) -> Optional[int]:
    """The number of the recording: each begins with empty tables."""
    period = document["tracer"]["period"]
    return period["number"] if period else None


class watch:
    """Measures a block of code::

        with gpumemtrace.watch("step") as step:
            ...
        print(step)                  # the figures and the sites
        step.retained_bytes          # over all GPUs; step.devices[0] has those of one

    Begin and end are marks, "NAME" and "NAME end". Blocks may be nested. The figures are of the whole process: what
    other threads do meanwhile is part of them. They are ``None``, and ``reason`` says why, where nothing was measured.
    """

    def __init__(self, name: str = "watch") -> None:
        self.name = name
        self.reason: Optional[str] = "the block has not ended"
        self._folder: Optional["tempfile.TemporaryDirectory[str]"] = None
        self._sites: Optional[List[SiteFigures]] = None
        self.file_label: Callable[[str], Optional[str]] = lambda file: None  # None: the report shows the file's name

    def __enter__(self) -> "watch":
        from gpumemtrace import is_active, mark
        self._folder = tempfile.TemporaryDirectory(prefix="gpumem-")
        # A tracer that was just woken begins with the next CUDA call, with empty tables.
        recorded = is_active()
        self._before = self._copy("before") if recorded else None
        self._live = {device: _shim.live_bytes(device) if recorded else 0 for device in range(HOST, _shim.DEVICES)}
        mark(self.name)
        self._peaks = _peaks.begin()
        return self

    def __exit__(self, *exc_info: object) -> None:
        from gpumemtrace import is_active, mark
        _peaks.end(self._peaks)
        self._added = {device: _shim.live_bytes(device) - before for device, before in self._live.items()}
        mark(self.name + " end")
        self._after = self._copy("after") if is_active() else None
        self.reason = None if self._after else NO_CALL if is_active() else ASLEEP if _shim.present else ABSENT

    def _copy(self, name: str) -> Optional[str]:
        from gpumemtrace import snapshot
        assert self._folder
        path = os.path.join(self._folder.name, name + ".gmt")
        return path if snapshot(path) else None

    @property
    def sites(self) -> List[SiteFigures]:
        """Those that allocated, or freed, in the block, what retains most first. RuntimeError if the report's tool fails."""
        if self._sites is None:
            if self.reason:
                return []
            self._sites = self._compare()
            assert self._folder
            self._folder.cleanup()
        return self._sites

    def _compare(self) -> List[SiteFigures]:
        assert self._after
        after = _sites.read(self._after)
        known = {}
        if self._before:
            before = _sites.read(self._before)
            if _period(before) != _period(after):
                raise RuntimeError("the tracer was stopped and started in the block")
            known = {site["id"]: site for site in before["sites"]}
        sites = []
        for site in _sites.in_use(after):
            old = known.get(site["id"], {})
            allocated, calls, retained = (site[key] - old.get(key, 0)
                                          for key in ("allocated_bytes", "allocations", "live_bytes"))
            if allocated or calls or retained:
                device = HOST if site["device"] is None else site["device"]
                sites.append(SiteFigures(allocated, calls, retained, device, site["kind"], site["stack"]))
        return sorted(sites, key=lambda site: (-site.retained_bytes, -site.allocated_bytes))

    @property
    def devices(self) -> Dict[int, Figures]:
        """The figures of each device that the block used. RuntimeError if the report's tool fails."""
        found = {}
        for device, added in ({} if self.reason else self._added).items():
            sites = [site for site in self.sites if site.device == device]
            peak = None if device == HOST else max(self._peaks.get(device, 0) - self._live[device], 0)
            if sites or added or peak:
                found[device] = Figures(sum(site.allocated_bytes for site in sites),
                                        sum(site.allocations for site in sites), added, peak)
        return found

    def _gpus(self, figure: Callable[[Figures], Any], join: Callable[[List[int]], int]) -> Optional[int]:
        if self.reason:
            return None
        return join([figure(figures) for device, figures in self.devices.items() if device != HOST])

    @property
    def allocated_bytes(self) -> Optional[int]:
        """Of all GPUs together."""
        return self._gpus(lambda figures: figures.allocated_bytes, sum)

    @property
    def retained_bytes(self) -> Optional[int]:
        """Of all GPUs together."""
        return self._gpus(lambda figures: figures.retained_bytes, sum)

    @property
    def peak_bytes(self) -> Optional[int]:
        """Of the GPU whose peak is highest."""
        return self._gpus(lambda figures: figures.peak_bytes, lambda peaks: max(peaks, default=0))

    def report(self, top: int = 5) -> str:
        """The figures, and the ``top`` sites with the program's own lines."""
        if self.reason:
            return f"{self.name}: not measured: {self.reason}"
        try:
            devices = self.devices
        except RuntimeError as error:
            return f"{self.name}: not measured: {error}"
        if not devices:
            return f"{self.name}: no GPU memory was allocated or freed"
        lines = []
        for device, figures in devices.items():
            where = "pinned host memory" if device == HOST else f"device {device}"
            peak = "" if figures.peak_bytes is None else f", peak {format_size(figures.peak_bytes)}"
            calls = "1 call" if figures.allocations == 1 else f"{figures.allocations} calls"
            lines.append(f"{self.name}, {where}: allocated {format_size(figures.allocated_bytes)} in {calls}, "
                         f"retained {format_size(figures.retained_bytes)}{peak}")
        lines.append(f"{'retained':>10} {'allocated':>10} {'calls':>6}  where")
        for site in self.sites[:top]:
            row = (f"{format_size(site.retained_bytes):>10} {format_size(site.allocated_bytes):>10} "
                   f"{site.allocations:>6}  ")
            for text in self._lines_of(site):
                lines.append(row + text)
                row = " " * len(row)
        if len(self.sites) > top:
            lines.append(f"and {len(self.sites) - top} more sites")
        return "\n".join(lines)

    def _lines_of(self, site: SiteFigures) -> List[str]:
        """The innermost frames of Python with their source, or where there are none those of native code."""
        python = [frame for frame in site.stack if frame["kind"] == "python"]
        lines = []
        for frame in _sites.own_frames(python, RUNNERS)[:FRAMES]:
            file, line = frame["file"] or "?", frame["line"] or 0
            source = linecache.getline(file, line).strip() or frame["function"]
            lines.append(f"{self.file_label(file) or os.path.basename(file)}:{line}  {source}")
        lines = lines or [_sites.frame_text(frame) for frame in site.stack[:FRAMES]] or [f"{site.kind} memory"]
        return [line if len(line) <= TEXT else line[:TEXT - 3] + "..." for line in lines]

    def __str__(self) -> str:
        return self.report()

    def __repr__(self) -> str:
        return f"<gpumemtrace.watch {self.name!r}: {self.reason or 'measured'}>"
