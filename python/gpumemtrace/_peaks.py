"""The tracer keeps one peak for each device; here several readers each get the peak since they began."""
import threading
from typing import Dict, List

from gpumemtrace import _shim

Reader = Dict[int, int]  # device: the most that was seen in use when a reader began or ended

_lock = threading.Lock()
_program: Reader = {}  # what peak_bytes and reset_peak of the package show
_readers: List[Reader] = [_program]


def _read(device: int) -> None:
    """Each reader learns the tracer's peak, which begins anew."""
    peak = _shim.peak_bytes(device)
    for reader in _readers:
        reader[device] = max(reader.get(device, 0), peak)
    _shim.reset_peak(device)


def begin() -> Reader:
    reader: Reader = {}
    with _lock:
        for device in range(_shim.DEVICES):
            _read(device)
        _readers.append(reader)
    return reader


def end(reader: Reader) -> None:
    """The reader has its peaks, and learns no more."""
    with _lock:
        for device in range(_shim.DEVICES):
            _read(device)
        _readers[:] = [other for other in _readers if other is not reader]


def peak_bytes(device: int) -> int:
    with _lock:
        return max(_program.get(device, 0), _shim.peak_bytes(device))


def reset_peak(device: int) -> None:
    with _lock:
        _read(device)
        _program[device] = 0
