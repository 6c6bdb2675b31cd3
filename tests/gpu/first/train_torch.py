"""An ordinary PyTorch training script. At the end it prints what PyTorch says of itself, as JSON."""
import json
import os
import subprocess

import torch

torch.manual_seed(0)
device = torch.device("cuda")
model = torch.nn.Sequential(
    torch.nn.Linear(1024, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 4096), torch.nn.ReLU(),
    torch.nn.Linear(4096, 10)).to(device)
optimizer = torch.optim.Adam(model.parameters())
data = torch.randn(512, 1024, device=device)
target = torch.randint(0, 10, (512,), device=device)
for step in range(50):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(data), target)
    loss.backward()
    optimizer.step()
torch.cuda.synchronize()

stats = torch.cuda.memory_stats()
smi = subprocess.run(["nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader"],
                     capture_output=True, text=True, env={**os.environ, "LD_PRELOAD": ""}).stdout
print(json.dumps({
    "pid": os.getpid(), "nvidia_smi": smi.strip(),
    "reserved": stats["reserved_bytes.all.current"],
    "reserved_peak": stats["reserved_bytes.all.peak"],
    "allocated": stats["allocated_bytes.all.current"],
    "allocated_peak": stats["allocated_bytes.all.peak"],
    "segments": stats["segment.all.current"],
    "allocations": stats["allocation.all.allocated"],
    "retries": stats["num_alloc_retries"], "ooms": stats["num_ooms"],
    "device_used": torch.cuda.mem_get_info()[1] - torch.cuda.mem_get_info()[0],
}), flush=True)
os._exit(0)
