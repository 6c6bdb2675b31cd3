"""The largest batch of a small model that trains before PyTorch is out of memory, to one sample. Each
trial begins with an empty cache. Prints it, as JSON, with what the device says of itself."""
import gc
import json

import torch

WIDTH, LENGTH, MOST = 1024, 256, 8192
torch.manual_seed(0)
model = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(WIDTH, 2 * WIDTH), torch.nn.ReLU(),
                                                  torch.nn.Linear(2 * WIDTH, WIDTH)) for _ in range(6)]).cuda()
optimizer = torch.optim.Adam(model.parameters())


def step(batch):
    data = torch.randn(batch, LENGTH, WIDTH, device="cuda")
    optimizer.zero_grad()
    model(data).square().mean().backward()
    optimizer.step()
    torch.cuda.synchronize()


def fits(batch):
    try:
        step(batch)
        fitted = True
    except torch.OutOfMemoryError:
        fitted = False
    optimizer.zero_grad()
    gc.collect()
    torch.cuda.empty_cache()
    return fitted


assert fits(1)
free, total = torch.cuda.mem_get_info()
low, high = 1, MOST
while high - low > 1:
    middle = (low + high) // 2
    low, high = (middle, high) if fits(middle) else (low, middle)
stats = torch.cuda.memory_stats()
print(json.dumps({"largest_batch": low, "free_after_first_step": free, "total": total,
                  "reserved_peak": stats["reserved_bytes.all.peak"], "ooms": stats["num_ooms"],
                  "retries": stats["num_alloc_retries"]}), flush=True)
