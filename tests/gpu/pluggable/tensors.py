"""tensors.py current|mempool FOLDER: PyTorch on an allocator of its program's own, compiled here into FOLDER.
Prints that allocator's counters, and PyTorch's where it keeps any, as one line of JSON.
"""
import ctypes
import json
import os
import subprocess
import sys

import torch

MIB = 1 << 20


def build(folder):
    """The library that PyTorch loaded is the one to link: there must not be two runtimes."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        cudart = next(line.split()[-1] for line in maps if "/libcudart" in line)
    here, library = os.path.dirname(os.path.abspath(__file__)), os.path.join(folder, "own_allocator.so")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, os.path.join(here, "own_allocator.c"), cudart,
                    f"-Wl,-rpath,{os.path.dirname(cudart)}"], check=True)
    return library


def work():
    """Tensors of many sizes and a small training loop; some are kept."""
    kept = [torch.empty(size * MIB, dtype=torch.uint8, device="cuda") for size in (1, 3, 30, 200, 7)]
    del kept[3]
    model = torch.nn.Linear(1024, 1024, device="cuda")
    optimizer = torch.optim.Adam(model.parameters())
    for batch in (64, 256, 32):
        model(torch.randn(batch, 1024, device="cuda")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    torch.cuda.synchronize()
    return kept, model, optimizer


mode, folder = sys.argv[1:3]
path = build(folder)
allocator = torch.cuda.memory.CUDAPluggableAllocator(path, "own_malloc", "own_free")
counters = ctypes.CDLL(path)
stats = {}
if mode == "current":
    torch.cuda.memory.change_current_allocator(allocator)
    held = work()
else:
    before = torch.empty(5 * MIB, dtype=torch.uint8, device="cuda")
    pool = torch.cuda.MemPool(allocator.allocator())
    with torch.cuda.use_mem_pool(pool):
        held = work()
    stats = torch.cuda.memory_stats()
facts = {name: ctypes.c_ulong.in_dll(counters, name).value
         for name in ("own_bytes", "own_peak_bytes", "own_total_bytes")}
for name in ("allocated", "reserved"):
    facts[f"{name}_bytes"] = stats.get(f"{name}_bytes.all.current")
    facts[f"{name}_peak_bytes"] = stats.get(f"{name}_bytes.all.peak")
print(json.dumps(facts), flush=True)
os._exit(0)  # what is held stays held: the file ends with the figures above
