"""A CuPy script that keeps some arrays, drops others, and prints what CuPy's pools say."""
import json
import os

import cupy

kept = [cupy.random.rand(1000, 1000) for _ in range(5)]
for _ in range(20):
    product = kept[0] @ kept[1]
spectrum = cupy.fft.fft(kept[2])
pinned = cupy.cuda.alloc_pinned_memory(1 << 20)
cupy.cuda.Device().synchronize()
pool = cupy.get_default_memory_pool()
free, total = cupy.cuda.runtime.memGetInfo()
print(json.dumps({"pool_total": pool.total_bytes(), "pool_used": pool.used_bytes(),
                  "device_used": total - free}), flush=True)
os._exit(0)
