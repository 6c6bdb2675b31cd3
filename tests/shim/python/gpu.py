"""Calls of the simulated runtime, and of the simulated allocator of PyTorch, for the tests of the Python package."""
import ctypes
import tempfile

MIB = 1 << 20
cudart = ctypes.CDLL("libcudart.so.13")


def allocate(size):
    address = ctypes.c_void_p()
    assert cudart.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(size)) == 0
    return address


def pin(size):
    address = ctypes.c_void_p()
    assert cudart.cudaMallocHost(ctypes.byref(address), ctypes.c_size_t(size)) == 0
    return address


def free(address):
    assert cudart.cudaFree(address) == 0


def replay(trace):
    """PyTorch's allocator, by lines of tests/sim/torch/traces/convert.py."""
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(trace)
        file.flush()
        ignored = ctypes.CFUNCTYPE(None, ctypes.c_char_p)(lambda name: None)
        library = ctypes.CDLL("libc10_cuda.so")
        assert library.gpusim_torch_replay(file.name.encode(), ctypes.c_uint(0), ignored) == 0
