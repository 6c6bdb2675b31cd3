"""Marks, regions, snapshots and figures for programs traced by gpumemtrace.

Everything here does nothing, at the cost of a function call, where the tracer is not in the process; so it
can stay in a program. Start one under the tracer with ``gpumemtrace run SCRIPT``.

``with watch() as block: ...`` measures a block of code, ``%load_ext gpumemtrace`` brings ``%%gpumem`` for cells of
notebooks.

Bytes in use are all that was allocated from CUDA and not freed; of what PyTorch's caching allocator reserved,
only the blocks that it handed out. Devices are CUDA's ordinals in this process; -1 is pinned host memory.
"""
import contextlib
import functools
import inspect
import os
from typing import Any, Callable, Optional, TypeVar, Union

from gpumemtrace import _peaks, _shim

__all__ = ["is_active", "start", "stop", "mark", "region", "snapshot", "live_bytes", "peak_bytes", "reset_peak",
           "watch", "Figures", "SiteFigures"]

_Function = TypeVar("_Function", bound=Callable[..., Any])


def is_active() -> bool:
    """Whether the tracer is in this process and records."""
    return bool(_shim.active())


def start() -> bool:
    """Begins to record at the next CUDA call, where the tracer sleeps (``GPUMEMTRACE_START=asleep``, or after
    :func:`stop`), for example in a notebook's cell. What an earlier period recorded is dropped.

    False where the tracer is not in this process, or switched off.
    """
    return _shim.start() == 0


def stop() -> bool:
    """Puts the tracer to sleep. The file keeps what it recorded, and says that it covers a period.

    False where the tracer is not in this process, or switched off.
    """
    return _shim.stop() == 0


def mark(name: str) -> None:
    """A point in time with a name (255 bytes of UTF-8 are kept).

    It closes the current window of the report; ``gpumem-report leaks --since NAME`` begins there.
    """
    _shim.mark(name.encode("utf-8", "replace"))


class region(contextlib.ContextDecorator):
    """A marked stretch: a mark NAME where it begins, a mark "NAME end" where it ends.

    As a context manager, ``with region("evaluation"): ...``, or a decorator, ``@region("step")``, also of
    coroutine functions. ``gpumem-report leaks --since NAME --until "NAME end" FILE`` shows what it left.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> "region":
        mark(self.name)
        return self

    def __exit__(self, *exc_info: object) -> None:
        mark(self.name + " end")

    def __call__(self, function: _Function) -> _Function:
        if not inspect.iscoroutinefunction(function):
            return super().__call__(function)

        @functools.wraps(function)
        async def traced(*args: Any, **kwargs: Any) -> Any:
            with self:
                return await function(*args, **kwargs)

        return traced  # type: ignore[return-value]


def snapshot(path: Union[str, "os.PathLike[str]"]) -> bool:
    """Writes a consistent copy of the tracer's file as it stands to ``path``.

    False if there is nothing to copy: no tracer, or no CUDA call yet. OSError if it cannot be written.
    """
    status = _shim.snapshot(os.fsencode(path))
    if status in _shim.NOTHING_TO_COPY:
        return False
    if status < 0:
        raise OSError(-status, os.strerror(-status), os.fspath(path))
    return True


def live_bytes(device: Optional[int] = None) -> int:
    """Bytes in use right now on a device (-1: pinned host memory), or on all devices together."""
    if device is None:
        return sum(_shim.live_bytes(number) for number in range(_shim.DEVICES))
    return _shim.live_bytes(device)


def peak_bytes(device: int = 0) -> int:
    """The most that was in use on a device since the start or the last ``reset_peak``; never a sample."""
    return _peaks.peak_bytes(device)


def reset_peak(device: int = 0) -> None:
    """``peak_bytes`` of the device begins anew at what is in use now. The report's peaks are not touched."""
    _peaks.reset_peak(device)


def load_ipython_extension(shell: Any) -> None:
    """What ``%load_ext gpumemtrace`` calls."""
    from gpumemtrace import _magic
    _magic.load(shell)


from gpumemtrace._watch import Figures, SiteFigures, watch  # noqa: E402, it uses the functions above
