"""Device memory for Python programs without a framework: the driver's API by ctypes."""
import ctypes

MIB = 1 << 20
cuda = ctypes.CDLL("libcuda.so.1")
_context, _module, _kernel = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
_image = (ctypes.c_uint * 16)(0x464C457F)


def _must(error):
    if error:
        raise RuntimeError(f"CUDA answered {error}")


def start(device=0):
    _must(cuda.cuInit(0))
    _must(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(_context), device))
    _must(cuda.cuCtxSetCurrent(_context))
    _must(cuda.cuModuleLoadData(ctypes.byref(_module), _image))
    _must(cuda.cuModuleGetFunction(ctypes.byref(_kernel), _module, b"kernel"))


def attach():
    """Makes the context current to the calling thread, as the driver's functions want it."""
    _must(cuda.cuCtxSetCurrent(_context))


def work(launches=100):
    for _ in range(launches):
        cuda.cuLaunchKernel(_kernel, 1, 1, 1, 32, 1, 1, 0, None, None, None)


class Buffer:
    """Device memory that lives as long as this object."""

    def __init__(self, size):
        self.pointer = ctypes.c_uint64()
        error = cuda.cuMemAlloc_v2(ctypes.byref(self.pointer), ctypes.c_size_t(size))
        if error:
            self.pointer = None
            raise MemoryError(f"cuMemAlloc of {size} bytes: error {error}")

    def __del__(self, free=cuda.cuMemFree_v2):
        if self.pointer:
            free(self.pointer)


class PinnedBuffer:
    def __init__(self, size):
        self.pointer = ctypes.c_void_p()
        if cuda.cuMemAllocHost_v2(ctypes.byref(self.pointer), ctypes.c_size_t(size)):
            self.pointer = None
            raise MemoryError("cuMemAllocHost")

    def __del__(self, free=cuda.cuMemFreeHost):
        if self.pointer:
            free(self.pointer)
