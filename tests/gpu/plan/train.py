"""A small language model that trains with AdamW: three steps of --batch N, or with --largest the largest
batch that goes through before PyTorch is out of memory, found by bisection. Prints it as JSON."""
import argparse
import gc
import json

import torch

WIDTH, LAYERS, HEADS, LENGTH, WORDS, MOST = 768, 6, 12, 256, 8192, 4096
parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int)
parser.add_argument("--largest", action="store_true")
options = parser.parse_args()


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(WORDS, WIDTH)
        layer = torch.nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, dropout=0.0, batch_first=True)
        self.layers = torch.nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.out = torch.nn.Linear(WIDTH, WORDS)

    def forward(self, tokens):
        return self.out(self.layers(self.words(tokens)))


torch.manual_seed(0)
model = Model().cuda()
optimizer = torch.optim.AdamW(model.parameters())


def step(batch):
    tokens = torch.randint(WORDS, (batch, LENGTH), device="cuda")
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
    loss.backward()
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


if options.largest:
    assert fits(1), "not even a batch of 1"
    low, high = 1, MOST
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    print(json.dumps({"largest_batch": low}), flush=True)
else:
    for _ in range(3):
        step(options.batch)
    stats = torch.cuda.memory_stats()
    print(json.dumps({"parameters": sum(p.numel() for p in model.parameters()),
                      "allocated_peak": stats["allocated_bytes.all.peak"],
                      "reserved_peak": stats["reserved_bytes.all.peak"]}), flush=True)
