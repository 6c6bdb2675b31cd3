"""Cases of docs/cases.md that need PyTorch, one a run: cases.py NUMBER. Each prints, as JSON, what
its report must say. Lines that a report must name end with a comment `here: WORD`."""
import gc
import json
import os
import sys

import torch

MIB, GIB = 1 << 20, 1 << 30
facts = {}


def line_of(word):
    with open(__file__) as text:
        return next(i for i, line in enumerate(text, 1) if line.rstrip().endswith(f"# here: {word}"))


def leave():
    """Ends as the case stands: no tear-down changes what is live."""
    torch.cuda.synchronize()
    facts["allocated"] = torch.cuda.memory_allocated()
    facts["reserved"] = torch.cuda.memory_reserved()
    facts["ooms"] = torch.cuda.memory_stats().get("num_ooms", 0)
    print(json.dumps(facts), flush=True)
    os._exit(0)


def empty(size):
    return torch.empty(size, dtype=torch.uint8, device="cuda")


def convert(size):
    return torch.zeros(size, dtype=torch.uint8, device="cuda")  # here: convert


def case_21():
    """A cached segment of 530 MiB is split for 270; what is left fits nothing and is pinned."""
    staging = empty(530 * MIB)
    del staging
    weights = convert(270 * MIB)
    later = [empty(300 * MIB)]
    facts.update(hole=260 * MIB, line=line_of("convert"))
    leave()
    del weights, later


case_39 = case_21  # the same, with max_split_size_mb set already


def case_22():
    """A large segment is split by small survivors: much is idle, no hole is large enough."""
    large = empty(11_600_000_000 // (2 * MIB) * 2 * MIB)
    del large
    passing, survivors = [], []
    for _ in range(10):
        passing.append(empty(1000 * MIB))
        survivors.append(empty(100 * MIB))  # here: survivors
    del passing
    facts.update(request=4 * GIB, line=line_of("survivors"), survivors=sum(s.numel() for s in survivors))
    try:
        empty(4 * GIB)
    except torch.OutOfMemoryError:
        facts["refused"] = True
    leave()


def case_23():
    """Linear(1,1): what is left is cuBLAS's workspace, by design."""
    for _ in range(40):
        model = torch.nn.Linear(1, 1).cuda()
        model(torch.ones(1, 1, device="cuda")).sum().backward()
        del model
    gc.collect()
    leave()


class Chain(torch.nn.Module):
    def forward(self, x):
        held = []
        for _ in range(4):
            held.append(torch.relu(x))  # here: activation
        return held, empty(1 << 42)


def case_24():
    """The traceback of an out-of-memory error keeps the tensors of the frames it went through."""
    error = None
    try:
        Chain()(torch.ones(128 * MIB, device="cuda"))
    except torch.OutOfMemoryError as caught:
        error = caught
    facts.update(kept=4 * 512 * MIB, line=line_of("activation"), error=type(error).__name__)
    leave()


def case_25():
    """Losses are collected with their graphs."""
    model = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 256)).cuda()
    losses = []
    for _ in range(200):
        data = torch.randn(128, 256, device="cuda")  # here: kept by the graph
        losses.append((model(data) - data).square().mean())  # here: losses
    facts.update(line=line_of("losses"), data_line=line_of("kept by the graph"))
    leave()


class Node:
    def __init__(self):
        self.itself = self
        self.buffer = torch.ones(512, device="cuda")  # here: cycle


def case_26():
    """A reference cycle: 2,048 B a step inside one segment, nothing at the driver's level."""
    gc.disable()
    a = torch.randn(512, 512, device="cuda")
    for _ in range(2000):
        Node()
        a = (a @ a).tanh()
    facts.update(line=line_of("cycle"), grown=2000 * 2048)
    leave()


def case_27():
    """Adam's state appears at the first step: one rise, no growth."""
    model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(4)]).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(100):
        optimizer.zero_grad()
        model(torch.randn(64, 1024, device="cuda")).square().mean().backward()
        optimizer.step()
    facts.update(state=sum(value.numel() * 4 for entry in optimizer.state.values()
                           for value in entry.values() if torch.is_tensor(value) and value.is_cuda))
    leave()


def case_31():
    """backend:cudaMallocAsync: much is allocated, more is reserved by the driver's pool."""
    blocks = [empty(512 * MIB) for _ in range(24)]
    del blocks[::2]
    torch.cuda.synchronize()
    facts.update(used=12 * 512 * MIB, idle=12 * 512 * MIB)
    print(json.dumps(facts), flush=True)
    os._exit(0)


def case_40():
    """Nothing is left for cuBLAS: it fails with an error of its own that hides the out-of-memory one."""
    a = torch.ones(256, 256, device="cuda")
    blocks = []
    for size in (256 * MIB, 32 * MIB, 2 * MIB):
        try:
            while True:
                blocks.append(empty(size))
        except torch.OutOfMemoryError:
            pass
    facts["before"] = torch.cuda.memory_stats()["num_ooms"]
    try:
        a @ a  # here: product
    except torch.OutOfMemoryError:
        facts["error"] = "torch.OutOfMemoryError"
    except RuntimeError as error:
        facts["error"] = str(error).splitlines()[0]
    facts.update(line=line_of("product"))
    leave()


if __name__ == "__main__":
    globals()[f"case_{sys.argv[1]}"]()
