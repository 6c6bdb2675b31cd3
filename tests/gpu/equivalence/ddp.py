"""One rank of a data-parallel job over NCCL; run by torchrun where there are two GPUs. It waits for the GPU
before it asks for memory: else a block that NCCL has just used is free again in one run and not in the next."""
import os

import torch
import torch.distributed as distributed

rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
distributed.init_process_group("nccl", device_id=torch.device("cuda", rank))
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2048, 2048).cuda(), [rank])
optimizer = torch.optim.Adam(model.parameters())
for _ in range(5):
    torch.cuda.synchronize()
    optimizer.zero_grad()
    model(torch.ones(64, 2048, device="cuda")).sum().backward()
    optimizer.step()
torch.cuda.synchronize()
distributed.destroy_process_group()
