"""Training that stops at a moment with live blocks, holes and an OOM behind it; there PyTorch dumps its
snapshot and the shim its file: train.py FOLDER NAME writes NAME.theirs.pickle and NAME.moment.gmt."""
import ctypes
import json
import os
import sys

import torch

MIB = 1 << 20
folder, name = sys.argv[1:]
torch.cuda.memory._record_memory_history(max_entries=200_000, stacks="python")
torch.manual_seed(0)
layer = torch.nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True)
model = torch.nn.Sequential(torch.nn.Embedding(2048, 256),
                            torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False),
                            torch.nn.Linear(256, 2048)).cuda()
optimizer = torch.optim.Adam(model.parameters())


def train(steps):
    for step in range(steps):
        length = (64, 200, 128, 333, 96)[step % 5]
        tokens = torch.randint(2048, (8, length), device="cuda")
        loss = torch.nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def holes():
    blocks = [torch.empty(size * 700_000, dtype=torch.uint8, device="cuda") for size in range(1, 13)]
    return blocks[1::2]


train(10)
kept = holes()
try:
    torch.cuda.set_per_process_memory_fraction(.05)
    torch.empty(1 << 42, dtype=torch.uint8, device="cuda")
except torch.OutOfMemoryError:
    torch.cuda.set_per_process_memory_fraction(1.0)
more = holes()
train(2)
torch.cuda.synchronize()
error = ctypes.CDLL(None).gpumemtrace_snapshot(f"{folder}/{name}.moment.gmt".encode())
if error:
    raise OSError(-error, "gpumemtrace_snapshot")
torch.cuda.memory._dump_snapshot(f"{folder}/{name}.theirs.pickle")
stats = torch.cuda.memory_stats()
print(json.dumps({"allocated": stats["allocated_bytes.all.current"], "reserved": stats["reserved_bytes.all.current"],
                  "segments": stats["segment.all.current"]}), flush=True)
os._exit(0)
