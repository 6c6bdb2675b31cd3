"""Eight PyTorch programs that run out of memory for a known reason: ooms.py NAME
They end with the exception, as a program that nobody wrote for this does, but for the two that recover."""
import os
import subprocess
import sys

import torch

GIB = 1 << 30


def free_bytes():
    return torch.cuda.mem_get_info()[0]


def weights():
    """Layer after layer, until they do not fit."""
    layers = []
    for _ in range(200):
        layers.append(torch.nn.Linear(16384, 16384, bias=False, device="cuda"))  # 1 GiB


def activations():
    """One forward pass whose activations do not fit: the batch is too large."""
    model = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(4096, 4096), torch.nn.GELU())
                                  for _ in range(32)]).cuda()
    for batch in (1 << 10, 1 << 12, 1 << 19):
        model(torch.randn(batch, 4096, device="cuda")).square().mean().backward()


kept = []


def remember(output):
    kept.append(output.repeat(64, 1))  # 4 GiB


def leak():
    """Every step keeps 4 GiB."""
    model = torch.nn.Linear(4096, 4096).cuda()
    for _ in range(1000):
        with torch.no_grad():
            remember(model(torch.randn(4096, 4096, device="cuda")))


def fragmented():
    """Half of the device is free, in holes that are too small."""
    count = free_bytes() // (2 * GIB) - 1
    pieces = []
    for _ in range(count):
        whole = torch.empty(2 * GIB, dtype=torch.uint8, device="cuda")
        del whole
        pieces.append([torch.empty(GIB, dtype=torch.uint8, device="cuda") for _ in range(2)])
    for pair in pieces:
        del pair[1]
    torch.empty(8 * GIB, dtype=torch.uint8, device="cuda")


def fraction():
    """The framework's own limit."""
    torch.cuda.set_per_process_memory_fraction(0.1)
    kept.extend(torch.empty(GIB, dtype=torch.uint8, device="cuda") for _ in range(100))


def pinned():
    """More pinned memory than the host has."""
    torch.ones(1, device="cuda")
    torch.empty(1 << 43, dtype=torch.uint8, pin_memory=True)


def neighbour():
    """Another process holds most of the device."""
    ask = int(free_bytes() * 0.75)
    other = subprocess.Popen([sys.executable, "-c", f"""
import sys, torch
kept = torch.empty({ask}, dtype=torch.uint8, device="cuda")
print("ready", flush=True)
sys.stdin.read()
"""], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             env={k: v for k, v in os.environ.items() if k != "LD_PRELOAD"})
    other.stdout.readline()
    try:
        torch.empty(int(ask * 0.8), dtype=torch.uint8, device="cuda")
    finally:
        other.communicate()


def batch_search():
    """Some thirty attempts that are too large, then one that fits."""
    model = torch.nn.Sequential(*[torch.nn.Linear(4096, 4096) for _ in range(16)]).cuda()
    batch = 1 << 23
    for _ in range(60):
        try:
            model(torch.randn(batch, 4096, device="cuda")).sum().backward()
            print("fits", batch, flush=True)
            break
        except torch.OutOfMemoryError:
            batch = batch * 9 // 10


if __name__ == "__main__":
    globals()[sys.argv[1]]()
