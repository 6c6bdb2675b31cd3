"""CuPy with its pool, with stream-ordered memory and with none. Prints the time of a step as JSON."""
import json
import statistics
import time

import cupy

kept, times = [], []
for allocator in (cupy.cuda.MemoryPool().malloc, cupy.cuda.MemoryAsyncPool().malloc, None):
    cupy.cuda.set_allocator(allocator)
    for i in range(20):
        start = time.perf_counter()
        a = cupy.ones((300 + i, 1000), dtype=cupy.float32)
        b = cupy.zeros((1000, 50), dtype=cupy.float32)
        c = a @ b + 1
        times.append(time.perf_counter() - start)
        if i % 5 == 0:
            kept.append(c)
    del a, b, c
pinned = cupy.cuda.alloc_pinned_memory(1 << 20)
cupy.cuda.Device().synchronize()
print(json.dumps({"step_ms": round(statistics.median(times) * 1e3, 3)}))
