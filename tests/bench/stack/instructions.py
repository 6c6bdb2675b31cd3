"""A loop for instructions.sh: captures with 20 Python frames. Without arguments says what it is."""
import ctypes
import sys

if len(sys.argv) == 1:
    print("CPython %s, 20 Python frames" % sys.version.split()[0])
    sys.exit()
timing = ctypes.CDLL(sys.argv[1])
timing.timing_ns.restype = ctypes.c_double
natives, pythons = ctypes.c_uint(), ctypes.c_uint()


def deep(depth, rounds):
    if depth:
        return deep(depth - 1, rounds)
    return timing.timing_ns(1, rounds, ctypes.byref(natives), ctypes.byref(pythons))


timing.timing_start(b"", 64)
timing.gm_stack_cache(sys.argv[3] != "off")
deep(18, int(sys.argv[2]))
