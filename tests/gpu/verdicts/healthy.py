"""Twelve PyTorch programs without a leak, ended as people end theirs: healthy.py NAME"""
import copy
import gc
import random
import sys

import torch

F = torch.nn.functional


def make_model(layers=4, width=512):
    layer = torch.nn.TransformerEncoderLayer(width, 8, 4 * width, batch_first=True)
    return torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False).cuda()


def train(model, optimizer, steps, batch=8, length=128):
    for _ in range(steps):
        data = torch.randn(batch, length, 512, device="cuda")
        optimizer.zero_grad(set_to_none=True)
        model(data).square().mean().backward()
        optimizer.step()


def one_step():
    """A smoke test."""
    model = make_model()
    train(model, torch.optim.AdamW(model.parameters()), 1)


def cached_inference():
    """A fixed key/value cache, as in a server that is warm."""
    keys = [torch.zeros(8, 8, 1024, 64, device="cuda") for _ in range(8)]
    values = [torch.zeros(8, 8, 1024, 64, device="cuda") for _ in range(8)]
    with torch.inference_mode():
        for position in range(300):
            query = torch.randn(8, 8, 1, 64, device="cuda")
            for key, value in zip(keys, values):
                key[:, :, position] = query[:, :, 0]
                value[:, :, position] = query[:, :, 0]
                query = F.scaled_dot_product_attention(query, key[:, :, :position + 1], value[:, :, :position + 1])


def compiled():
    """torch.compile with CUDA graphs."""
    model = torch.nn.Sequential(torch.nn.Linear(1024, 1024), torch.nn.GELU(), torch.nn.Linear(1024, 1024)).cuda()
    step = torch.compile(model, mode="reduce-overhead")
    data = torch.randn(64, 1024, device="cuda")
    with torch.no_grad():
        for _ in range(200):
            step(data)


def lora():
    """Adapters trained, the base frozen."""
    base = make_model().requires_grad_(False)
    adapters = torch.nn.ModuleList(torch.nn.Sequential(torch.nn.Linear(512, 8, bias=False),
                                                       torch.nn.Linear(8, 512, bias=False)) for _ in range(8)).cuda()
    optimizer = torch.optim.AdamW(adapters.parameters())
    for _ in range(60):
        hidden = torch.randn(8, 128, 512, device="cuda")
        optimizer.zero_grad(set_to_none=True)
        for layer, adapter in zip(list(base.layers) * 2, adapters):
            hidden = layer(hidden) + adapter(hidden)
        hidden.square().mean().backward()
        optimizer.step()


def two_phases():
    """The head first, then all of it."""
    model = make_model(8)
    head = torch.nn.Linear(512, 1000).cuda()
    for parameters in (list(head.parameters()), list(head.parameters()) + list(model.parameters())):
        for parameter in model.parameters():
            parameter.requires_grad_(len(parameters) > 2)
        optimizer = torch.optim.AdamW(parameters)
        for _ in range(40):
            optimizer.zero_grad(set_to_none=True)
            head(model(torch.randn(8, 128, 512, device="cuda"))).square().mean().backward()
            optimizer.step()


def load_only():
    """A model of some 60 layers, loaded and nothing else."""
    torch.manual_seed(0)
    state = {f"layers.{i}.weight": torch.randn(1024, 1024) for i in range(60)}
    loaded = {name: value.to("cuda") for name, value in state.items()}
    print(len(loaded))


def load_and_step():
    """Loading, and the first step of Adam right before the end."""
    model = make_model(16)
    train(model, torch.optim.Adam(model.parameters()), 1)


def training():
    model = make_model()
    train(model, torch.optim.Adam(model.parameters()), 120)


def random_batches():
    """Batches of 2 to 64: no leak, but peaks that differ."""
    random.seed(1)
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(120):
        train(model, optimizer, 1, batch=random.randint(2, 64))


def accumulation():
    model = make_model()
    optimizer = torch.optim.AdamW(model.parameters())
    for epoch in range(4):
        for step in range(40):
            model(torch.randn(4, 128, 512, device="cuda")).square().mean().backward()
            if step % 4 == 3:
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
        with torch.no_grad():
            print(sum(model(torch.randn(16, 128, 512, device="cuda")).mean().item() for _ in range(10)))


def prefetch():
    """Pinned batches, copied ahead of their use."""
    stream = torch.cuda.Stream()
    model = make_model()
    optimizer = torch.optim.AdamW(model.parameters())
    batches = [torch.randn(8, 128, 512).pin_memory() for _ in range(8)]
    ahead = None
    for step in range(100):
        with torch.cuda.stream(stream):
            coming = batches[step % 8].to("cuda", non_blocking=True)
        if ahead is not None:
            optimizer.zero_grad(set_to_none=True)
            model(ahead).square().mean().backward()
            optimizer.step()
        torch.cuda.current_stream().wait_stream(stream)
        ahead = coming


def checkpoints():
    """A copy of the weights kept up to date, and checkpoints through the host."""
    model = make_model()
    average = copy.deepcopy(model)
    optimizer = torch.optim.AdamW(model.parameters())
    for epoch in range(5):
        train(model, optimizer, 20)
        with torch.no_grad():
            for slow, fast in zip(average.parameters(), model.parameters()):
                slow.lerp_(fast, 0.01)
        state = {name: value.cpu() for name, value in model.state_dict().items()}
        model.load_state_dict(state)
        gc.collect()


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    torch.cuda.synchronize()
    print(f"live {torch.cuda.memory_allocated()} reserved {torch.cuda.memory_reserved()}", flush=True)
