"""Keeps blocks in a few ways and changes everything around them as fast as it can, until its standard input ends.

Blocks wander between lists, dictionaries, attributes and frames; those of `steady` stay where they are. Each
block's size says what may hold it, so that a chain can be checked: see ALLOWED in holders.py beside this file.
"""
import collections
import ctypes
import os
import random
import sys
import threading

KIB = 1 << 10
driver = ctypes.CDLL("libcuda.so.1")
context = ctypes.c_void_p()
driver.cuInit(0)
driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)


class Buffer:
    def __init__(self, kib):
        self.pointer = ctypes.c_uint64()
        driver.cuCtxSetCurrent(context)
        if driver.cuMemAlloc_v2(ctypes.byref(self.pointer), ctypes.c_size_t(kib * KIB)):
            raise MemoryError(kib)

    def __del__(self):
        driver.cuMemFree_v2(self.pointer)


class Carrier:
    pass


class Node:
    pass


steady = {"list": [Buffer(1) for _ in range(20)], "deep": [[[Buffer(1)]] for _ in range(20)]}
in_list = []
in_dict = {}
in_queue = collections.deque()
carrier = Carrier()


def in_frame(depth):
    held = Buffer(5)
    if depth:
        in_frame(depth - 1)
    return held


def change(seed):
    choice = random.Random(seed)
    while True:
        action = choice.randrange(8)
        if action == 0:
            in_list.append(Buffer(2))
        elif action == 1 and len(in_list) > 50:
            in_list.pop(choice.randrange(40))
        elif action == 2:
            in_dict[choice.randrange(100)] = Buffer(3)
        elif action == 3:
            in_dict.pop(choice.randrange(100), None)
        elif action == 4:
            in_queue.append(Buffer(4))
            if len(in_queue) > 80:
                in_queue.popleft()
        elif action == 5:
            in_frame(choice.randrange(20))
        elif action == 6:
            carrier.__dict__["slot%d" % choice.randrange(30)] = Buffer(6)
        else:
            one, two = Node(), Node()
            one.other, two.other, one.buffer = two, one, Buffer(7)


for seed in range(3):
    threading.Thread(target=change, args=(seed,), daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
os._exit(0)
