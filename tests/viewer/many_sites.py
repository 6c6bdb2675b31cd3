#!/usr/bin/env python3
"""Allocates from many different stacks: a file whose document has some ten megabytes.

    many_sites.py SITES DEPTH [ANYTHING...]
"""
import ctypes
import os
import sys

KIB = 1 << 10
cuda = ctypes.CDLL("libcuda.so.1")
pointers = []


def allocate(number):
    pointer = ctypes.c_uint64()
    if cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t((1 + number % 97) * KIB)):
        sys.exit("cuMemAlloc failed")
    pointers.append(pointer)
    if number % 3 == 0:
        cuda.cuMemFree_v2(pointers.pop())


def layer_functions(depth):
    """Functions layer_0_a, layer_0_b, ...: the bits of a number choose the way through them."""
    names = {"allocate": allocate}
    for level in range(depth):
        for letter in "ab":
            below = f"(layer_{level - 1}_b if number >> {level} & 1 else layer_{level - 1}_a)" if level else "allocate"
            code = f"def layer_{level}_{letter}(number):\n    {below}(number)\n"
            exec(compile(code, f"/srv/model/layers/layer_{level:02}.py", "exec"), names)
    return names[f"layer_{depth - 1}_a"]


def main():
    sites, depth = int(sys.argv[1]), int(sys.argv[2])
    context = ctypes.c_void_p()
    if cuda.cuInit(0) or cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0):
        sys.exit("no CUDA device")
    cuda.cuCtxSetCurrent(context)
    first = layer_functions(depth)
    for number in range(sites):
        first(number)
    print(f"{sites} sites")
    sys.stdout.flush()
    os._exit(0)


main()
