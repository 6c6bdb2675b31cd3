"""Computations with CuPy, as people write them: cupy_science.py NAME. ../workloads.py has their labels."""
import collections
import random
import sys

import cupy
import numpy

random.seed(0)
pool = cupy.get_default_memory_pool()


# ---- with the pool ----


def spectra_of_records():
    """Records of five lengths are read, filtered and fetched."""
    for index in range(120):
        record = cupy.asarray(numpy.random.rand(1 << (16 + index % 5)).astype(numpy.float32))
        spectrum = cupy.fft.rfft(record)
        spectrum[len(spectrum) // 2:] = 0
        cupy.fft.irfft(spectrum).get()


def power_iterations():
    matrix = cupy.random.rand(2048, 2048, dtype=cupy.float32)
    for _ in range(10):
        vector = cupy.ones(2048, dtype=cupy.float32)
        for _ in range(30):
            vector = matrix @ vector
            vector /= cupy.linalg.norm(vector)
        print(float(vector @ (matrix @ vector)))


def least_squares():
    """Regressions of different sizes; cuSOLVER asks for its workspaces."""
    for index in range(40):
        left = cupy.random.rand(400 + 50 * (index % 6), 200)
        print(float(cupy.linalg.lstsq(left, left @ cupy.ones(200))[0].sum()))


def limited_pool():
    """The pool's own limit refuses an array: CUDA is never asked."""
    pool.set_limit(size=256 << 20)
    parts = [cupy.ones(4 << 20, dtype=cupy.float32) for _ in range(10)]
    parts.append(cupy.ones(64 << 20, dtype=cupy.float32))


# ---- streams, each with an arena of the pool ----


def on_own_stream(streams):
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        field = cupy.ones((1024, 1024), dtype=cupy.float32)
        for _ in range(4):
            field = cupy.sin(field) + 1
        stream.synchronize()
    streams.append(stream)
    return float(field[0, 0])


def streams_kept():
    """A stream for each request, and each keeps an arena of the pool's: blocks never move between them."""
    streams = []
    for _ in range(80):
        on_own_stream(streams)


def streams_in_turn():
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(3)]
    for index in range(120):
        with streams[index % 3]:
            field = cupy.ones((1024, 1024), dtype=cupy.float32)
            (cupy.sin(field) + 1).sum()
    for stream in streams:
        stream.synchronize()


# ---- without the pool of CuPy's ----


def filtered(image, width):
    kernel = cupy.ones(width, dtype=cupy.float32) / width
    rows = cupy.fft.irfft(cupy.fft.rfft(image, axis=1) * cupy.fft.rfft(kernel, image.shape[1]), image.shape[1], axis=1)
    return rows


def stack_images(keep):
    """The driver's stream-ordered allocator serves every array."""
    cupy.cuda.set_allocator(cupy.cuda.MemoryAsyncPool().malloc)
    stacked = collections.deque(maxlen=None if keep else 8)
    for index in range(90):
        image = cupy.asarray(numpy.full((1024, 1024), index, dtype=numpy.float32))
        stacked.append(filtered(image, 9))
    print(float(sum(image.mean() for image in list(stacked)[-8:])))


def images_stacked():
    """All images of the night are kept, and eight are looked at."""
    stack_images(True)


def images_averaged():
    stack_images(False)


def managed_pool():
    """Unified memory through a pool, a few fields that are reused."""
    cupy.cuda.set_allocator(cupy.cuda.MemoryPool(cupy.cuda.malloc_managed).malloc)
    field = cupy.zeros((1024, 1024), dtype=cupy.float32)
    for _ in range(150):
        field = (cupy.roll(field, 1, 0) + 1) / 2


plans = {}


def plan_for(length):
    if length not in plans:
        plans[length] = cupy.cuda.cufft.Plan1d(length, cupy.cuda.cufft.CUFFT_C2C, 64)
    return plans[length]


def transforms(lengths):
    cupy.cuda.set_allocator(None)
    for index in range(120):
        length = lengths[index % len(lengths)]
        plan, data = plan_for(length), cupy.ones((64, length), dtype=cupy.complex64)
        result = cupy.empty_like(data)
        plan.fft(data, result, cupy.cuda.cufft.CUFFT_FORWARD)
        cupy.cuda.Device().synchronize()


def plans_for_each_length():
    """A plan for each of 120 prime lengths, each with its work area."""
    numbers = [n for n in range(2003, 4000) if all(n % d for d in range(2, 64))]
    transforms(numbers[:120])


def plans_for_four_lengths():
    transforms([1021, 2003, 3001, 4093])


def pinned_stage(kept, bounded):
    memory = cupy.cuda.alloc_pinned_memory(3 << 20)
    stage = numpy.frombuffer(memory, numpy.float32, 3 << 18)
    stage[:] = 1
    kept.append(stage)
    if bounded:
        del kept[:-3]
    return cupy.asarray(stage)


def stages_kept():
    """A pinned array for each file that was read."""
    kept = []
    for _ in range(80):
        float(pinned_stage(kept, False).sum())


def stages_in_turn():
    kept = []
    for _ in range(80):
        float(pinned_stage(kept, True).sum())


modules = []


def compile_formula(text):
    """A kernel of a user's formula."""
    table = ", ".join(str(random.random()) for _ in range(40_000))
    module = cupy.RawModule(code=f'''
        __device__ const float table[40000] = {{{table}}};
        extern "C" __global__ void formula(float *values, int count) {{
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i < count) values[i] = {text} + table[i % 40000];
        }}''')
    modules.append(module)
    return module.get_function("formula")


def formulas():
    """Every formula is compiled with its table, and none is ever unloaded."""
    values = cupy.zeros(1 << 20, dtype=cupy.float32)
    for index in range(60):
        compile_formula(f"values[i] * {index}.5f")((4096,), (256,), (values, numpy.int32(values.size)))
    cupy.cuda.Device().synchronize()


# ---- out of memory ----


def spectrum(volume):
    return cupy.fft.fftn(volume)


def oom_volume():
    """The transform of a volume wants room for its result and its work area."""
    spectrum(cupy.ones((640, 640, 640), dtype=cupy.complex64))


def distances(points):
    return cupy.sqrt(((points[:, None, :] - points[None, :, :]) ** 2).sum(-1))


def oom_more_points():
    """Batches of points become larger until all pairs of them do not fit."""
    for count in (1000, 2000, 4000, 8000, 16000, 32000):
        print(float(distances(cupy.random.rand(count, 3)).mean()))


def oom_history():
    """Arrays straight from the driver, kept for a plot, until none is left."""
    cupy.cuda.set_allocator(None)
    history, field = [], cupy.random.rand(1024, 1024, dtype=cupy.float32)
    while True:
        field = advance(field)
        history.append(field)


def advance(field):
    return cupy.sin(field) * 0.99


if __name__ == "__main__":
    globals()[sys.argv[1]]()
