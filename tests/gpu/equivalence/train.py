"""PyTorch training on a small transformer: parameters, activations, an optimizer, an OOM that is caught
and pinned batches. Prints the median time of a step and PyTorch's own figures as JSON."""
import json
import os
import statistics
import time

import torch

WARM_UP, STEPS = 10, 40

torch.manual_seed(0)
layer = torch.nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True)
model = torch.nn.TransformerEncoder(layer, 6, enable_nested_tensor=False).cuda()
optimizer = torch.optim.Adam(model.parameters())
batch = torch.randn(8, 128, 256).pin_memory()
times = []
for i in range(WARM_UP + STEPS):
    start = time.perf_counter()
    optimizer.zero_grad(set_to_none=True)
    loss = model(batch.cuda(non_blocking=True)).square().mean()
    loss.backward()
    optimizer.step()
    if i >= WARM_UP:
        times.append(time.perf_counter() - start)
if "expandable" in os.environ.get("PYTORCH_CUDA_ALLOC_CONF", ""):
    # Else PyTorch maps chunk after chunk until the device is full: how many depends on its free memory.
    torch.cuda.set_per_process_memory_fraction(0.02)
try:
    torch.empty(1 << 42, dtype=torch.uint8, device="cuda")
except torch.OutOfMemoryError:
    pass
del loss, batch
torch.cuda.synchronize()
torch.cuda.empty_cache()
stats = torch.cuda.memory_stats()
print(json.dumps({"step_ms": round(statistics.median(times) * 1e3, 3),
                  "allocations": stats.get("allocation.all.allocated", 0),
                  "reserved": stats.get("reserved_bytes.all.current", 0),
                  "ooms": stats.get("num_ooms", 0)}))
