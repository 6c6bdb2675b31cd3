"""Holds so much of the device that exactly SIZE bytes are free: ballast.py LIBCUDART SIZE. Says `ready`
and holds it until its standard input ends. No framework: a context and one allocation."""
import ctypes
import sys

PAGE = 2 << 20
runtime = ctypes.CDLL(sys.argv[1])
size = int(sys.argv[2])


def check(error, what):
    if error:
        sys.exit(f"{what}: error {error}")


def free_bytes():
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    check(runtime.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total)), "cudaMemGetInfo")
    return free.value


check(runtime.cudaFree(None), "cudaFree")
memory = ctypes.c_void_p()
check(runtime.cudaMalloc(ctypes.byref(memory), ctypes.c_size_t((free_bytes() - size) // PAGE * PAGE)),
      "cudaMalloc")
print("ready", free_bytes(), flush=True)
sys.stdin.read()
