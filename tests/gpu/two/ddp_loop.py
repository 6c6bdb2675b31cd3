"""One rank of data-parallel training, run by torchrun. Rank 1 keeps its graphs (`leak`) or touches the
other rank's device (`stray`). Prints what it knows of itself as JSON into FOLDER/said.RANK:
ddp_loop.py FOLDER [leak] [stray]"""
import json
import os
import sys

import torch
import torch.distributed as distributed

STEPS = 120


def touch_other_device():
    return torch.zeros(1, device="cuda:0")


folder = sys.argv[1]
rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
if "stray" in sys.argv and rank == 1:
    stray = touch_other_device()
distributed.init_process_group("nccl", device_id=torch.device("cuda", rank))
torch.manual_seed(rank)
network = torch.nn.Sequential(torch.nn.Linear(1024, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 1024)).cuda()
model = torch.nn.parallel.DistributedDataParallel(network, device_ids=[rank])
optimizer = torch.optim.Adam(model.parameters())
kept = []
for _ in range(STEPS):
    data = torch.randn(256, 1024, device="cuda")
    optimizer.zero_grad()
    loss = (model(data) - data).square().mean()
    loss.backward()
    optimizer.step()
    if "leak" in sys.argv and rank == 1:
        kept.append(network(data).sum())  # its graph stays
distributed.barrier()  # whose tensor stays
torch.cuda.synchronize()
stats = torch.cuda.memory_stats()
with open(f"{folder}/said.{rank}", "w") as said:
    json.dump({"rank": rank, "allocated": stats["allocated_bytes.all.current"],
               "allocated_peak": stats["allocated_bytes.all.peak"],
               "reserved": stats["reserved_bytes.all.current"],
               "append_line": next(i for i, line in enumerate(open(__file__), 1) if "its graph stays" in line),
               "stray_line": touch_other_device.__code__.co_firstlineno + 1}, said)
    said.write("\n")
os._exit(0)
