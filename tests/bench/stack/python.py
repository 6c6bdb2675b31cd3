"""What a stack with 20 Python frames costs, known and new. Prints a table; asserts nothing."""
import ctypes
import sys

timing = ctypes.CDLL(sys.argv[1])
timing.timing_ns.restype = ctypes.c_double
natives, pythons = ctypes.c_uint(), ctypes.c_uint()


def deep(depth, what, rounds):
    if depth:
        return deep(depth - 1, what, rounds)
    return timing.timing_ns(what, rounds, ctypes.byref(natives), ctypes.byref(pythons))


for what, name, rounds in ((0, "capture", 20000), (1, "capture and intern, known", 20000),
                           (2, "capture and intern, new", 1000)):
    timing.timing_start(b"", 64)
    ns = deep(17, what, rounds)
    print("CPython %-8s  %-30s %2d native + %2d Python frames %8.1f ns" % (
        sys.version.split()[0], name, natives.value, pythons.value, ns))
