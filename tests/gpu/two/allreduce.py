"""One rank of all-reduces over NCCL: the sums are right; what a second communicator took of the device, and
what is left after the end of all, by the driver's own figure. allreduce.py FOLDER"""
import ctypes
import json
import os
import sys

import torch
import torch.distributed as distributed

folder = sys.argv[1]
rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
shim = ctypes.CDLL(None)


def free_bytes():
    torch.cuda.synchronize()
    return torch.cuda.mem_get_info()[0]


def snapshot(name):
    error = shim.gpumemtrace_snapshot(f"{folder}/{name}.{rank}.gmt".encode())
    if error:
        raise OSError(-error, "gpumemtrace_snapshot")


def all_reduced(group=None):
    data = torch.full((1 << 20,), float(rank + 1), device="cuda")
    distributed.all_reduce(data, group=group)
    return bool((data == sum(range(1, distributed.get_world_size() + 1))).all())


distributed.init_process_group("nccl")
right = [all_reduced()]  # code is loaded and PyTorch's own blocks are taken before the first look
distributed.barrier(device_ids=[rank])
one = free_bytes()
snapshot("one")
group = distributed.new_group([0, 1])
right.append(all_reduced(group))
distributed.barrier(device_ids=[rank])
two = free_bytes()
snapshot("two")
distributed.destroy_process_group()
after = free_bytes()
snapshot("after")
with open(f"{folder}/said.{rank}", "w") as said:
    json.dump({"rank": rank, "right": all(right), "second": one - two, "given_back": after - two}, said)
    said.write("\n")
