"""Case 4: pinned arrays dropped without a finaliser, through ctypes as a binding would."""
import ctypes

cudart = ctypes.CDLL("libcudart.so.13")


class PinnedArray:
    def __init__(self, size):
        self.address = ctypes.c_void_p()
        error = cudart.cudaMallocHost(ctypes.byref(self.address), ctypes.c_size_t(size))
        assert error == 0, error


for _ in range(10):
    PinnedArray(200_000_000)
