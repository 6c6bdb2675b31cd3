"""Keeps buffers in a list, and meets a moment at which holders are captured: captured.py oom|mark|signal|grow|leak.

At that moment the list `kept` holds six buffers of 1 MiB (46 with `leak`, which takes and frees working memory in
between, and has its mark at the end); right after it, it is emptied, but not with `leak`. While the process runs on it
waits for children of its own, of which there are none, and says what it saw.
"""
import ctypes
import os
import signal
import sys

MIB = 1 << 20
driver = ctypes.CDLL("libcuda.so.1")
tracer = ctypes.CDLL(None)
context = ctypes.c_void_p()
driver.cuInit(0)
driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
driver.cuCtxSetCurrent(context)
children = []
signal.signal(signal.SIGCHLD, lambda *_: children.append(1))


class Buffer:
    def __init__(self, nbytes):
        self.pointer = ctypes.c_uint64()
        if driver.cuMemAlloc_v2(ctypes.byref(self.pointer), ctypes.c_size_t(nbytes)):
            raise MemoryError(nbytes)

    def __del__(self):
        if self.pointer:
            driver.cuMemFree_v2(self.pointer)


def step():
    kept.append(Buffer(MIB))


kept = []
for _ in range(6):
    step()
if sys.argv[1] == "oom":
    try:
        Buffer(1 << 50)
    except MemoryError:
        pass
elif sys.argv[1] == "leak":
    for _ in range(40):
        step()
        Buffer(2 * MIB)
    tracer.gpumemtrace_mark(b"end")
elif sys.argv[1] == "mark":
    tracer.gpumemtrace_mark(b"here")
elif sys.argv[1] == "signal":
    os.kill(os.getpid(), signal.SIGUSR1)
if sys.argv[1] != "leak":
    kept.clear()
try:
    os.wait()
    children.append("wait")
except ChildProcessError:
    pass
# what is freed is in the file before the process ends, and so the capture cannot have read it from there
last = Buffer(MIB)
if len(sys.argv) > 2:
    print("ready", flush=True)
    sys.stdin.read()
sys.exit(1 if children else 0)
