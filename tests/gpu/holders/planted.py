"""Ten ways to keep tensors of PyTorch on a GPU, each its own function, and a collection that frees the garbage.

planted.py         plants all, says so, and waits: a line "collect" on its standard input makes it call gc.collect()
planted.py oom     keeps losses with their graphs in a list until the device has no room left
"""
import functools
import gc
import sys

import torch

MIB = 1 << 20
device = "cuda"


def make(mib=4, **options):
    return torch.ones(mib * MIB // 4, device=device, **options)


def exception():
    global saved_error
    def failing():
        activations = make()
        raise RuntimeError("planted")
    try:
        failing()
    except RuntimeError as error:
        saved_error = error


def hook():
    global hooked
    captured = make()
    hooked = torch.ones(4, device=device, requires_grad=True)
    hooked.register_hook(lambda grad: grad * captured[0])


def closure():
    global callback
    captured = make()
    callback = lambda: captured  # noqa: E731


def lru_cache():
    global load
    @functools.lru_cache(maxsize=4)
    def load(name):
        return make()
    load("a")
    load("b")


def session_table():
    global sessions
    class Session:
        def __init__(self):
            self.kv = make()
    sessions = {number: Session() for number in range(5)}


def losses_with_graph():
    global losses
    losses = []
    weights = torch.ones(4 * MIB // 4, device=device, requires_grad=True)
    for _ in range(6):
        activations = make()
        losses.append((weights * activations).sum())


def cycle():
    class Node:
        pass
    for _ in range(3):
        one, two = Node(), Node()
        one.other, two.other, one.tensor = two, one, make()


def optimizer():
    global adam, model
    model = torch.nn.Linear(1024, 1024, bias=False, device=device)
    adam = torch.optim.Adam(model.parameters(), fused=False, foreach=False)
    model(torch.ones(1, 1024, device=device)).sum().backward()
    adam.step()


def data_loader():
    global batches
    class Rows(torch.utils.data.Dataset):
        def __len__(self):
            return 4
        def __getitem__(self, number):
            return torch.full((MIB,), float(number))
    batches = [batch for batch in torch.utils.data.DataLoader(Rows(), pin_memory=True)]


def cuda_graph():
    global graph, graph_input, graph_output
    graph_input = make()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        graph_input * 2
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        graph_output = graph_input * 2


def out_of_memory():
    global losses
    losses = []
    weights = torch.ones(64 * MIB, device=device, requires_grad=True)
    while True:
        losses.append((weights * torch.rand(64 * MIB, device=device)).sum())


def main():
    if sys.argv[1:] == ["oom"]:
        torch.cuda.set_per_process_memory_fraction(0.1)
        out_of_memory()
    gc.collect()
    gc.disable()
    for plant in (exception, hook, closure, lru_cache, session_table, losses_with_graph, cycle, optimizer, data_loader,
                  cuda_graph):
        plant()
    torch.cuda.synchronize()
    print("planted", flush=True)
    for line in sys.stdin:
        gc.collect()
        print("collected", torch.cuda.memory_allocated(), flush=True)


main()
