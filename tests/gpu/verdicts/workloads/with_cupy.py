"""Programs with CuPy, Numba and dlpack, as people write them: with_cupy.py NAME. ../workloads.py has their labels."""
import sys

import cupy
import numpy


def simulate(steps, keep=None):
    """Diffusion in a plane; keep(field) is called after each step."""
    field = cupy.random.rand(1024, 1024, dtype=cupy.float32)
    for _ in range(steps):
        field = (cupy.roll(field, 1, 0) + cupy.roll(field, -1, 0) + cupy.roll(field, 1, 1) + cupy.roll(field, -1, 1)) / 4
        if keep:
            keep(field)


frames = []


def frames_kept():
    """Every frame stays on the GPU, for a film at the end."""
    simulate(150, frames.append)


def frames_fetched():
    simulate(150, lambda field: frames.append(field.get()))


def pool_emptied():
    """The pool is given back after each case."""
    for _ in range(12):
        simulate(15)
        cupy.get_default_memory_pool().free_all_blocks()


def without_pool():
    """Each array is an allocation of the driver's."""
    cupy.cuda.set_allocator(None)
    simulate(60)


def without_pool_kept():
    cupy.cuda.set_allocator(None)
    simulate(60, frames.append)


def pool_freed():
    """Everything goes back to the driver before the end."""
    cupy.cuda.set_allocator(None)
    field = cupy.ones((1024, 1024), dtype=cupy.float32)
    for _ in range(40):
        field = field * 1.01
    print(float(field.sum()))
    del field
    cupy.get_default_pinned_memory_pool().free_all_blocks()


def plans_by_length():
    """FFTs of six lengths: the cache of plans is bounded."""
    for step in range(120):
        cupy.fft.fft(cupy.random.rand(64, 1 << (10 + step % 6)))


def tensors(keep):
    import torch

    model = torch.nn.Linear(1024, 1024).cuda()
    for _ in range(80):
        with torch.no_grad():
            output = model(torch.randn(1024, 1024, device="cuda"))
        array = cupy.from_dlpack(output)
        array = array * 2
        if keep:
            frames.append(cupy.from_dlpack(output))
        print(float(array.sum()))


def dlpack_kept():
    """CuPy's views keep the memory of PyTorch's tensors."""
    tensors(True)


def dlpack_dropped():
    tensors(False)


def numba_kept():
    """Arrays on the device, by the name of their file."""
    from numba import cuda

    loaded = {}
    for step in range(60):
        loaded[f"part-{step}.npy"] = cuda.to_device(numpy.ones(1 << 20, dtype=numpy.float32))
        scratch = cuda.device_array(1 << 18)
        scratch.copy_to_host()


def numba_dropped():
    """Numba frees what is dropped in lots."""
    from numba import cuda

    for step in range(200):
        part = cuda.to_device(numpy.full(1 << 20, step, dtype=numpy.float32))
        part.copy_to_host()


def never_freed():
    """Sixteen buffers of the runtime's, which nobody frees."""
    for _ in range(16):
        cupy.cuda.runtime.malloc(4 << 20)


def nothing():
    """Imports the package, and that is all."""


def fails():
    """Ends with a status of its own, after a leak."""
    without_pool_kept()
    sys.exit(7)


def oom_frames():
    simulate(100000, frames.append)


def oom_matrix():
    """One matrix that is larger than the device."""
    points = cupy.random.rand(200000, 3)
    cupy.linalg.norm(points[:, None] - points[None], axis=2)


def oom_pinned():
    """More pinned memory than the host has."""
    cupy.zeros(1)
    cupy.cuda.alloc_pinned_memory(1 << 43)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
