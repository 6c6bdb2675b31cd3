"""The pytest plugin: ``pytest --gpumem`` measures what each test takes and leaves of GPU memory.

Markers, which hold where ``--gpumem`` is given:

* ``@pytest.mark.limit_gpu_memory("2 GiB")``: the test may add no more to what was in use, on any device
* ``@pytest.mark.limit_gpu_leaks("1 MiB", warmups=2)``: it may leave no more behind; it is run ``warmups``
  times before it is measured, so that what the first run makes for all others is no leak

Everything is one process: figures are differences around each test's call, fixtures are not part of it.
A test that goes over its limit fails with the allocation sites and their stacks. A limit that was not measured,
because no GPU was used, fails too, unless ``--gpumem-allow-unmeasured`` is given.
"""
import gc
import os
import sys
from typing import Dict, List, NamedTuple, Optional

import pytest

import gpumemtrace
from gpumemtrace import _files, _shim, _sites
from gpumemtrace._size import format_size, parse_size

STARTED = "_GPUMEMTRACE_PYTEST_STARTED"


class Limit(NamedTuple):
    text: str  # as it was written
    limit_bytes: int
    warmups: int = 0


def read_limit(item, name: str) -> Optional[Limit]:
    marker = item.get_closest_marker(name)
    if not marker:
        return None
    allowed = {"warmups"} if name == "limit_gpu_leaks" else set()
    warmups = marker.kwargs.get("warmups", 0)
    try:
        if len(marker.args) != 1 or set(marker.kwargs) - allowed:
            raise ValueError("it takes a size" + (" and warmups=N" if allowed else ""))
        if not isinstance(warmups, int) or warmups < 0:
            raise ValueError(f"warmups={warmups!r} is no number of runs")
        return Limit(str(marker.args[0]), parse_size(marker.args[0]), warmups)
    except ValueError as error:
        item.stash[BAD_MARKER] = f"{name}: {error}"
        return None


class Measure:
    """One test's call: what was in use before, and what it added at most and left."""

    def __init__(self) -> None:
        gc.collect()
        self.before: Dict[int, int] = {}
        for device in range(_shim.DEVICES):
            self.before[device] = gpumemtrace.live_bytes(device)
            gpumemtrace.reset_peak(device)

    def end(self) -> None:
        self.peak = self._worst(gpumemtrace.peak_bytes)
        gc.collect()
        self.left = self._worst(gpumemtrace.live_bytes)

    def _worst(self, figure) -> "Worst":
        return max(Worst(figure(device) - before, device) for device, before in self.before.items())


class Worst(NamedTuple):
    added_bytes: int
    device: int

    def __str__(self) -> str:
        return f"{format_size(self.added_bytes)} on device {self.device}"


class Plugin:
    """What ``--gpumem`` brings. Figures travel as user properties of the reports: to the table at the end,
    to JUnit files and from pytest-xdist's workers."""

    def __init__(self, config) -> None:
        self.config = config
        self.warming = False
        self.marks: Dict[str, int] = {}
        self.rows: List[tuple] = []
        self.gpu_used = False

    def pytest_collection_modifyitems(self, items) -> None:
        for item in items:
            item.stash[LIMIT] = read_limit(item, "limit_gpu_memory")
            item.stash[LEAKS] = read_limit(item, "limit_gpu_leaks")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item) -> None:
        if BAD_MARKER in item.stash:
            pytest.fail(item.stash[BAD_MARKER], pytrace=False)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item):
        self._begin(item)
        yield
        item.stash[MEASURE].end()
        measure = item.stash[MEASURE]
        item.user_properties += [("gpumem_peak_bytes", measure.peak.added_bytes),
                                 ("gpumem_left_bytes", measure.left.added_bytes)]

    @pytest.hookimpl(hookwrapper=True)
    def pytest_pyfunc_call(self, pyfuncitem):
        leaks = pyfuncitem.stash[LEAKS]
        if leaks and leaks.warmups and not self.warming:
            self.warming = True
            try:
                for _ in range(leaks.warmups):
                    pyfuncitem.ihook.pytest_pyfunc_call(pyfuncitem=pyfuncitem)
            finally:
                self.warming = False
            self._begin(pyfuncitem)
        yield

    def _begin(self, item) -> None:
        name = item.nodeid
        self.marks[name] = self.marks.get(name, 0) + 1
        gpumemtrace.mark(name)
        item.stash[MEASURE] = Measure()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item, call):
        outcome = yield
        report = outcome.get_result()
        measure = item.stash.get(MEASURE, None)
        if call.when != "call" or report.outcome != "passed" or not measure:
            return
        text = self._judge(item, measure)
        if text:
            report.outcome, report.longrepr = "failed", text

    def _judge(self, item, measure) -> Optional[str]:
        limit, leaks = item.stash[LIMIT], item.stash[LEAKS]
        mark = _sites.mark_name(item.nodeid, self.marks[item.nodeid])
        texts = []
        if (limit or leaks) and not self._measures(measure):
            return (None if self.config.getoption("gpumem_allow_unmeasured") else
                    "Not measured: no GPU was used. There is none, its driver is not there, or no CUDA call "
                    "reached it.\n--gpumem-allow-unmeasured lets such a test pass.")
        if limit and measure.peak.added_bytes > limit.limit_bytes:
            texts.append(f"The test took {measure.peak}; its limit is {limit.text}.\n"
                         + _sites.taken(mark, measure.peak.device, format_size))
        if leaks and measure.left.added_bytes > leaks.limit_bytes:
            texts.append(f"The test left {measure.left}; its limit is {leaks.text}.\n"
                         + _sites.left(mark, measure.left.device, format_size))
        return "\n\n".join(texts)

    def _measures(self, measure) -> bool:
        """Whether figures of 0 are figures: a GPU is in use. The tracer's file says so, if no figure does."""
        self.gpu_used = (self.gpu_used or measure.peak.added_bytes > 0 or measure.left.added_bytes != 0
                         or gpumemtrace.live_bytes() > 0 or _sites.gpu_used())
        return self.gpu_used

    def pytest_runtest_logreport(self, report) -> None:
        if report.when == "call":
            figures = dict(report.user_properties)
            if "gpumem_peak_bytes" in figures:
                self.rows.append((figures["gpumem_peak_bytes"], figures["gpumem_left_bytes"], report.nodeid))

    def pytest_terminal_summary(self, terminalreporter) -> None:
        rows = sorted((row for row in self.rows if row[0] > 0 or row[1] != 0), key=lambda row: (-row[0], row[2]))
        top = self.config.getoption("gpumem_top")
        terminalreporter.section("GPU memory of tests")
        if not rows:
            terminalreporter.line("no test allocated GPU memory")
            return
        terminalreporter.line(f"{'took':>12} {'left':>12}  test")
        for peak, left, nodeid in rows[:top]:
            terminalreporter.line(f"{format_size(peak):>12} {format_size(left):>12}  {nodeid}")
        if len(rows) > top:
            terminalreporter.line(f"and {len(rows) - top} more, --gpumem-top shows them")


LIMIT, LEAKS, MEASURE, BAD_MARKER = pytest.StashKey(), pytest.StashKey(), pytest.StashKey(), pytest.StashKey()


def pytest_addoption(parser) -> None:
    group = parser.getgroup("gpumem", "GPU memory of tests")
    group.addoption("--gpumem", action="store_true", help="measure GPU memory of each test, check its limits")
    group.addoption("--gpumem-allow-unmeasured", action="store_true",
                    help="a limit does not fail where no GPU was used")
    group.addoption("--gpumem-out", metavar="FILE", help="the tracer's file (gpumemtrace.PID.gmt)")
    group.addoption("--gpumem-top", metavar="N", type=int, default=10, help="rows of the table at the end (10)")


def pytest_configure(config) -> None:
    config.addinivalue_line("markers", "limit_gpu_memory(size): fail a test that takes more GPU memory, as "
                                       '"2 GiB" (with --gpumem)')
    config.addinivalue_line("markers", "limit_gpu_leaks(size, warmups=0): fail a test that retains more GPU memory, "
                                       "after so many runs that do not count (with --gpumem)")
    if config.getoption("gpumem") and gpumemtrace.is_active():
        config.pluginmanager.register(Plugin(config), "gpumem")


def _own_command() -> List[str]:
    """The command that started this pytest. UsageError if it was a program of another purpose."""
    name = os.path.basename(sys.argv[0])
    if name not in ("pytest", "py.test", "__main__.py"):
        raise pytest.UsageError(f"--gpumem: pytest was started by {sys.argv[0]}, which is not started again under "
                                "the tracer; start it by gpumemtrace run")
    if hasattr(sys, "orig_argv"):
        return [sys.executable, *sys.orig_argv[1:]]
    return [sys.executable, *(["-m", "pytest"] if name == "__main__.py" else [sys.argv[0]]), *sys.argv[1:]]


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config) -> None:
    """Starts pytest once more, under the tracer: it has to be in a process from its beginning."""
    if not config.getoption("gpumem") or gpumemtrace.is_active() or hasattr(config, "workerinput"):
        return
    if os.environ.get(STARTED):
        raise pytest.UsageError("--gpumem: the tracer is not in this process; GPUMEMTRACE_DISABLE is set, or "
                                "LD_PRELOAD is taken away on the way here")
    command = _own_command()
    environment = {**os.environ, STARTED: "1"}
    if config.getoption("gpumem_out"):
        environment["GPUMEMTRACE_OUT"] = os.path.abspath(config.getoption("gpumem_out"))
    try:
        _files.preload(environment)
    except ValueError as error:
        raise pytest.UsageError(f"--gpumem: {error}") from None
    capture = config.pluginmanager.getplugin("capturemanager")
    if capture:
        capture.suspend_global_capture(in_=True)
    sys.stdout.flush()
    sys.stderr.flush()
    os.chdir(config.invocation_params.dir)
    os.execve(command[0], command, environment)
