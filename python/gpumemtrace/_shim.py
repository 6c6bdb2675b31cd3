"""The tracer's public functions (include/gpumemtrace.h), found in the running process; else stand-ins."""
import ctypes
import errno
from typing import Callable

DEVICES = 64  # as many as the tracer tells apart
NOTHING_TO_COPY = (-errno.ENOSYS, -errno.ENODATA)

_process = ctypes.CDLL(None)


def _find(name, result, arguments, absent):
    try:
        function = getattr(_process, "gpumemtrace_" + name)
    except AttributeError:
        return lambda *args: absent
    function.restype, function.argtypes = result, arguments
    return function


present = hasattr(_process, "gpumemtrace_start")
start: Callable[[], int] = _find("start", ctypes.c_int, [], -errno.ENOSYS)
stop: Callable[[], int] = _find("stop", ctypes.c_int, [], -errno.ENOSYS)
active: Callable[[], int] = _find("active", ctypes.c_int, [], 0)
mark: Callable[[bytes], None] = _find("mark", None, [ctypes.c_char_p], None)
snapshot: Callable[[bytes], int] = _find("snapshot", ctypes.c_int, [ctypes.c_char_p], -errno.ENOSYS)
live_bytes: Callable[[int], int] = _find("live_bytes", ctypes.c_uint64, [ctypes.c_int], 0)
peak_bytes: Callable[[int], int] = _find("peak_bytes", ctypes.c_uint64, [ctypes.c_int], 0)
reset_peak: Callable[[int], None] = _find("reset_peak", None, [ctypes.c_int], None)
