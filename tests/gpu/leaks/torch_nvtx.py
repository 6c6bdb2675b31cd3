"""Twelve steps of training, each a range of NVTX named `step` with another one inside."""
import json

import torch

STEPS = 12
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512)).cuda()
optimizer = torch.optim.Adam(model.parameters())
for _ in range(STEPS):
    torch.cuda.nvtx.range_push("step")
    data = torch.randn(64, 512, device="cuda")
    with torch.cuda.nvtx.range("inside"):
        loss = (model(data) - data).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    torch.cuda.nvtx.range_pop()
torch.cuda.synchronize()
print(json.dumps({"steps": STEPS}), flush=True)
