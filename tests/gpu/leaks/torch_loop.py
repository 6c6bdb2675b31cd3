"""200 steps of forward and backward; with the argument `leak` each loss is kept with its graph."""
import sys

import torch

leak = "leak" in sys.argv
model = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 512)).cuda()
optimizer = torch.optim.Adam(model.parameters())
losses = []
for step in range(200):
    data = torch.randn(256, 512, device="cuda")
    optimizer.zero_grad()
    loss = (model(data) - data).square().mean()
    loss.backward(retain_graph=leak)
    optimizer.step()
    if leak:
        losses.append(loss + model(data).sum())  # keeps the graph of the second forward pass
    else:
        losses.append(loss.item())
torch.cuda.synchronize()
