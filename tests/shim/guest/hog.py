"""Allocates one block of device memory, then host memory until the kernel ends it."""
import ctypes
import sys

cudart = ctypes.CDLL(sys.argv[1] + "/libcudart.so.13")
memory = ctypes.c_void_p()
assert cudart.cudaMalloc(ctypes.byref(memory), ctypes.c_size_t(54321)) == 0
hog = []
while True:
    hog.append(bytearray(b"x" * (1 << 20)))
