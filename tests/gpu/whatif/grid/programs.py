"""Small programs whose use of PyTorch's allocator differs: programs.py NAME [--snapshot FILE] [--cap]

Prints a line of JSON with the allocator's own statistics at the end, or where the program ran out of memory.
--snapshot records the allocator's history and dumps it; --cap sets the memory fraction that the program has.
"""
import argparse
import gc
import json
import random

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

MIB = 1 << 20
PROGRAMS = {}


def program(function=None, cap=None):
    """Registers a program; `cap` is the memory in MiB that its process is allowed."""
    def register(named):
        PROGRAMS[named.__name__] = (named, cap)
        return named
    return register(function) if function else register


def mebibytes(number):
    return torch.empty(int(number * MIB), dtype=torch.uint8, device="cuda")


def mlp(width, layers):
    return nn.Sequential(*[m for _ in range(layers) for m in (nn.Linear(width, width), nn.GELU())]).cuda()


def steps(model, optimizer, batches, loss=lambda y: y.float().square().mean()):
    for batch in batches:
        optimizer.zero_grad(set_to_none=True)
        loss(model(batch)).backward()
        optimizer.step()


def encoder(width=512, layers=4):
    layer = nn.TransformerEncoderLayer(width, 8, 4 * width, dropout=0, batch_first=True)
    return nn.TransformerEncoder(layer, layers, enable_nested_tensor=False).cuda()


class Convolutions(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.parts = nn.ModuleList(
            nn.Sequential(nn.Conv2d(3 if i == 0 else width << (i - 1), width << i, 3, 2, 1),
                          nn.BatchNorm2d(width << i), nn.ReLU()) for i in range(4))
        self.head = nn.Linear(width << 3, 100)

    def forward(self, x):
        for part in self.parts:
            x = part(x)
        return self.head(x.mean((2, 3)))


@program
def train_mlp():
    model = mlp(2048, 8)
    steps(model, torch.optim.Adam(model.parameters()), (torch.randn(512, 2048, device="cuda") for _ in range(6)))


@program
def train_transformer():
    model = encoder()
    steps(model, torch.optim.AdamW(model.parameters()),
          (torch.randn(8, 256, 512, device="cuda") for _ in range(5)))


@program
def varying_lengths():
    model, pick = encoder(), random.Random(7)
    steps(model, torch.optim.AdamW(model.parameters()),
          (torch.randn(8, pick.randrange(40, 700), 512, device="cuda") for _ in range(16)))


@program
def varying_batches():
    model, pick = mlp(1536, 6), random.Random(11)
    steps(model, torch.optim.SGD(model.parameters(), 0.01, momentum=0.9),
          (torch.randn(pick.randrange(100, 6000), 1536, device="cuda") for _ in range(24)))


class Adapter(nn.Module):
    def __init__(self, width, rank):
        super().__init__()
        self.base = nn.Linear(width, width).requires_grad_(False)
        self.down, self.up = nn.Linear(width, rank, bias=False), nn.Linear(rank, width, bias=False)

    def forward(self, x):
        return functional.gelu(self.base(x) + self.up(self.down(x)))


@program
def adapters():
    model = nn.Sequential(*[Adapter(3072, 16) for _ in range(10)]).cuda()
    wanted = [p for p in model.parameters() if p.requires_grad]
    steps(model, torch.optim.AdamW(wanted), (torch.randn(300 + 90 * i, 3072, device="cuda") for i in range(8)))


@program
@torch.no_grad()
def generation():
    layers, width = 12, 1024
    caches = [torch.randn(2, 4, 16, 64, width // 16, device="cuda") for _ in range(layers)]
    for _ in range(160):
        for i in range(layers):
            new = torch.randn(2, 4, 16, 1, width // 16, device="cuda")
            caches[i] = torch.cat((caches[i], new), 3)
            query = torch.randn(4, 16, 1, width // 16, device="cuda")
            functional.scaled_dot_product_attention(query, caches[i][0], caches[i][1])


@program
def convolution():
    model = Convolutions().cuda()
    steps(model, torch.optim.SGD(model.parameters(), 0.01),
          (torch.randn(32, 3, 160, 160, device="cuda") for _ in range(5)))


@program
def convolution_scales():
    model = Convolutions(48).cuda()
    steps(model, torch.optim.Adam(model.parameters()),
          (torch.randn(24, 3, side, side, device="cuda") for side in (96, 224, 128, 192, 160, 256, 112, 240)))


@program
def recurrent():
    model = nn.LSTM(512, 1024, 2, batch_first=True).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for length in (60, 100, 80, 140, 50, 120):
        optimizer.zero_grad(set_to_none=True)
        model(torch.randn(64, length, 512, device="cuda"))[0].square().mean().backward()
        optimizer.step()


@program
def half_precision():
    model = encoder(768, 3)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
    for length in (128, 200, 256, 180, 300):
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16):
            loss = model(torch.randn(8, length, 768, device="cuda")).float().square().mean()
        loss.backward()
        optimizer.step()


@program
def checkpointed():
    blocks = nn.ModuleList(mlp(1024, 2) for _ in range(8))
    optimizer = torch.optim.Adam(blocks.parameters())
    for rows in (4000, 6000, 5000, 7000):
        optimizer.zero_grad(set_to_none=True)
        x = torch.randn(rows, 1024, device="cuda", requires_grad=True)
        for block in blocks:
            x = checkpoint(block, x, use_reentrant=False)
        x.square().mean().backward()
        optimizer.step()


@program
def accumulated():
    model = mlp(1792, 6)
    optimizer = torch.optim.Adam(model.parameters(), foreach=False)
    for _ in range(3):
        for rows in (700, 1500, 1100, 2300):
            model(torch.randn(rows, 1792, device="cuda")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


@program
def embeddings():
    table, pick = nn.Embedding(200000, 256).cuda(), random.Random(3)
    optimizer = torch.optim.SGD(table.parameters(), 0.1)
    for _ in range(6):
        optimizer.zero_grad(set_to_none=True)
        rows = torch.randint(0, 200000, (pick.randrange(10000, 90000),), device="cuda")
        table(rows).square().sum().backward()
        optimizer.step()


@program
def two_streams():
    side, kept = torch.cuda.Stream(), []
    for i in range(40):
        kept.append(mebibytes(1 + i % 7))
        with torch.cuda.stream(side):
            kept.append(mebibytes(0.3 + i % 5))
            x = torch.randn(900 + 40 * i, 900, device="cuda")
            x = x @ x.T
        if i % 3 == 2:
            torch.cuda.synchronize()
            del kept[::2]


@program
def recorded_streams():
    side, pick = torch.cuda.Stream(), random.Random(5)
    for _ in range(60):
        x = mebibytes(pick.randrange(2, 60))
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            torch.cuda._sleep(200000)
            x.fill_(1)
        x.record_stream(side)
        del x
        mebibytes(pick.randrange(1, 30)).fill_(0)
    torch.cuda.synchronize()
    mebibytes(80)


@program
def captured_graph():
    model, graph = mlp(1024, 6), torch.cuda.CUDAGraph()
    x = torch.randn(512, 1024, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side), torch.no_grad():
        for _ in range(3):
            model(x)
    torch.cuda.current_stream().wait_stream(side)
    with torch.cuda.graph(graph), torch.no_grad():
        model(x)
    for _ in range(10):
        graph.replay()
    model(torch.randn(3000, 1024, device="cuda")).sum().backward()


@program
def graphs_of_batches():
    model, graphs, pool = mlp(1280, 4), [], None
    with torch.no_grad():
        model(torch.randn(64, 1280, device="cuda"))
        for rows in (4096, 2048, 1024, 512):
            x, graph = torch.randn(rows, 1280, device="cuda"), torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=pool):
                model(x)
            pool = pool or graph.pool()
            graphs.append((graph, x))
        for graph, x in graphs:
            graph.replay()
        mebibytes(300)


@program
def phases():
    for width in (1024, 2048, 1536):
        model = mlp(width, 5)
        steps(model, torch.optim.Adam(model.parameters()),
              (torch.randn(800, width, device="cuda") for _ in range(3)))
        del model
        torch.cuda.empty_cache()


@program
@torch.no_grad()
def requests():
    pick, kept = random.Random(13), []
    model = mlp(1024, 4)
    for _ in range(120):
        kept.append(model(torch.randn(pick.randrange(16, 5000), 1024, device="cuda")))
        if len(kept) > 12:
            kept.pop(pick.randrange(len(kept)))


def churn(pick, count, live, size):
    kept = []
    for _ in range(count):
        kept.append(mebibytes(size(pick)))
        while sum(t.numel() for t in kept) > live * MIB:
            kept.pop(pick.randrange(len(kept)))


@program
def churn_small():
    churn(random.Random(17), 6000, 60, lambda pick: pick.choice((0.001, 0.01, 0.1, 0.4, 0.9, 1.1)) * pick.random())


@program
def churn_large():
    churn(random.Random(19), 900, 3000, lambda pick: 2 ** (9 * pick.random()))


@program(cap=3500)
def churn_capped():
    churn(random.Random(23), 900, 2600, lambda pick: 2 ** (8 * pick.random()))


@program(cap=2000)
def grows_over_cap():
    kept = []
    for i in range(1, 80):
        kept.append(mebibytes(10 + i))


@program(cap=2400)
def holes_under_cap():
    kept = [mebibytes(30) for _ in range(60)]
    del kept[::2]
    kept += [mebibytes(50) for _ in range(14)]


@program(cap=2200)
def flushed():
    for size in (300, 500, 700, 900, 1100, 400, 1300, 1900, 600):
        block = mebibytes(size)
        mebibytes(size / 3)
        del block


@program(cap=1600)
def training_under_cap():
    model, pick = mlp(1536, 6), random.Random(29)
    steps(model, torch.optim.Adam(model.parameters()),
          (torch.randn(pick.randrange(200, 9000), 1536, device="cuda") for _ in range(24)))


def statistics(name, cap, oom):
    stats = torch.cuda.memory_stats()
    return {"program": name, "oom": oom, "torch": torch.__version__,
            "total": torch.cuda.get_device_properties(0).total_memory, "cap_mib": cap,
            "reserved_peak": stats["reserved_bytes.all.peak"],
            "allocated_peak": stats["allocated_bytes.all.peak"],
            "retries": stats.get("num_alloc_retries", 0), "ooms": stats.get("num_ooms", 0),
            "segments": stats.get("num_device_alloc", 0)}


def fraction(cap):
    return cap * MIB / torch.cuda.get_device_properties(0).total_memory


def main():
    words = argparse.ArgumentParser()
    words.add_argument("name", choices=sorted(PROGRAMS))
    words.add_argument("--snapshot")
    words.add_argument("--cap", action="store_true")
    words = words.parse_args()
    run, cap = PROGRAMS[words.name]
    oom = False
    gc.disable()
    torch.manual_seed(1)
    if words.snapshot:
        torch.cuda.memory._record_memory_history(context="all", stacks="python")
    if words.cap and cap:
        torch.cuda.set_per_process_memory_fraction(fraction(cap))
    try:
        run()
        torch.cuda.synchronize()
    except torch.OutOfMemoryError:
        oom = True
    print(json.dumps(statistics(words.name, cap, oom)), flush=True)
    if words.snapshot:
        torch.cuda.memory._dump_snapshot(words.snapshot)


if __name__ == "__main__":
    main()
