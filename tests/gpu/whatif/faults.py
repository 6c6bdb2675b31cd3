"""Blocks one after another, each with a segment of its own, while GPUMEMTRACE_FAIL makes calls fail:
PyTorch frees its cache and tries again. Prints what PyTorch counted and which requests it gave up."""
import json

import torch

MIB = 1 << 20
given_up = []


def request(size):
    try:
        return torch.empty(size, dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError:
        given_up.append(size // MIB)
        return None


kept = []
for i in range(60):
    if i % 10 == 0:
        request(12 * MIB)  # goes back to the cache, too small for the others
    kept.append(request((14 + 2 * (i % 10)) * MIB))
stats = torch.cuda.memory_stats()
print(json.dumps({"retries": stats["num_alloc_retries"], "ooms": stats["num_ooms"], "given_up": given_up,
                  "kept": sum(block is not None for block in kept)}), flush=True)
