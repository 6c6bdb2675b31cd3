"""Scripts on the stand-in for PyTorch that run out of memory, each for a known reason, or nearly do.

The device has 8 GiB, of which the context takes 512 MiB, unless cases.py says otherwise.
"""
import torch
import torch.nn.functional as F
from torch import nn

import ending

STEPS = 80
WIDTH = 2048
MIB = 1 << 20

world = {}  # what lives as long as the script


def megabytes(size):
    return torch.empty(size * MIB, dtype="uint8")


def make_model(depth=3, width=WIDTH):
    layers = []
    for _ in range(depth):
        layers += [nn.Linear(width, width), nn.ReLU()]
    return nn.Sequential(*layers).cuda()


def train_step(model, optimizer, batch=256):
    loss = F.mse_loss(model(torch.randn(batch, WIDTH)), torch.randn(batch, WIDTH))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


def trainer(depth=3):
    model = make_model(depth)
    world["trainer"] = model, torch.optim.Adam(model.parameters())
    return world["trainer"]


def keep(name, value):
    world.setdefault(name, []).append(value)


# ---- what is live does not fit ----


def activations():
    """The batch is too large: forward fails after half of the layers."""
    model, optimizer = trainer(20)
    for _ in range(20):
        train_step(model, optimizer)
    train_step(model, optimizer, 64000)


def weights():
    """The model itself does not fit."""
    world["model"] = make_model(600)


def optimizer_state():
    """Weights and gradients fit; Adam's state, twice the weights, does not."""
    model, optimizer = trainer(130)
    train_step(model, optimizer)


def backward():
    """Forward fits; the gradients of backward do not."""
    model = world["model"] = make_model(60)
    world["adapters"] = make_model(370)
    F.mse_loss(model(torch.randn(256, WIDTH)), torch.randn(256, WIDTH)).backward()


def little_idle():
    """7.4 GiB are reserved and 3 % of it is idle in small holes: that is no fragmentation worth the name."""
    world["weights"] = [megabytes(100) for _ in range(70)]
    pairs = [megabytes(9) for _ in range(40)]
    world["pairs"] = pairs[::2]
    del pairs
    world["batch"] = megabytes(300)


def little_idle_expandable():
    """The same with expandable segments, which the script itself switched on."""
    torch.cuda.memory._set_allocator_settings("expandable_segments:True")
    world["weights"] = [megabytes(100) for _ in range(68)]
    blocks = [megabytes(9) for _ in range(60)]
    world["blocks"] = blocks[::2] + blocks[-1:]
    del blocks
    world["batch"] = megabytes(400)


def after_a_flush():
    """2 GiB of cached segments were given back to the driver for the request, and that was not enough."""
    world["weights"] = [megabytes(100) for _ in range(50)]
    cached = [megabytes(100) for _ in range(20)]
    del cached
    world["batch"] = megabytes(3000)


def collect_prediction(model):
    keep("predictions", model(torch.randn(4096, WIDTH)).detach())


def leak():
    """A list of predictions fills the device: the leak is the cause."""
    model, optimizer = trainer()
    while True:
        train_step(model, optimizer)
        collect_prediction(model)


def evaluate_all(model):
    for _ in range(400):
        keep("outputs", model(torch.randn(1024, WIDTH)))


def evaluation_with_graphs():
    """Evaluation forgets no_grad() and keeps outputs: each batch's graph stays until the device is full."""
    model, optimizer = trainer()
    for _ in range(20):
        train_step(model, optimizer)
    evaluate_all(model)


def open_session(number):
    keep("sessions", [torch.zeros(2, 256, 4096) for _ in range(8)])


def sessions():
    """Sessions with key/value caches that do not expire."""
    model = world["model"] = make_model()
    for i in range(1000):
        open_session(i)
        with torch.no_grad():
            model(torch.randn(512, WIDTH))


def second_device():
    """The second device is full; the first one has room."""
    world["model"] = make_model(4)
    world["far"] = [torch.Tensor((100 * MIB,), "uint8", "cuda:1") for _ in range(80)]


# ---- fragmentation ----


def convert_weight():
    """The weight as it is stored, 100 MiB, becomes one of 60 MiB, which is put into the hole that the first leaves."""
    stored = megabytes(100)
    torch._C.launch(40)
    del stored
    keep("weights", megabytes(60))


def load_converted(tensors):
    for _ in range(tensors):
        convert_weight()


def serve(model, requests):
    with torch.no_grad():
        for _ in range(requests):
            model(torch.randn(256, WIDTH))


def fragmented():
    """7 GiB are reserved, 4.3 GiB in use, and no hole holds 1 GiB."""
    model = world["model"] = make_model()
    load_converted(72)
    serve(model, 3 * STEPS)
    world["batch"] = megabytes(1024)


def fragmented_idle():
    """The same without a request that fails: much of what is reserved is idle for the rest of the run."""
    model = world["model"] = make_model()
    load_converted(48)
    serve(model, 6 * STEPS)


def private_pool():
    """4 GiB lie idle in the private pool of a graph, which the common pool cannot use."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        scratch = megabytes(4096)
        del scratch
    world["graph"] = graph
    world["weights"] = [megabytes(100) for _ in range(20)]
    world["batch"] = megabytes(3000)


# ---- limits, others, the host ----


def fraction():
    """set_per_process_memory_fraction(0.25) on an otherwise empty device."""
    torch.cuda.set_per_process_memory_fraction(0.25)
    model, optimizer = trainer()
    for _ in range(20):
        train_step(model, optimizer)
    world["batch"] = [megabytes(500) for _ in range(8)]


def beside_others():
    """A model that would fit if another process did not hold 5 GiB."""
    model, optimizer = trainer(20)
    for _ in range(20):
        train_step(model, optimizer)
    world["batch"] = megabytes(3000)


def pinned_loader():
    """The loader pins more than the host allows."""
    keep("pinned", None)
    for _ in range(80):
        keep("pinned", torch.Tensor((16 * MIB,), "uint8", "cpu").pin_memory())


# ---- caught ----


def try_batch(model, batch):
    with torch.no_grad():
        model(torch.randn(batch, WIDTH))


def batch_search():
    """The largest batch is looked for from above: 30 errors at one place, then a healthy run."""
    model, optimizer = trainer()
    refused, batch = 0, 600 << 10
    while refused < 100:
        try:
            try_batch(model, batch)
            break
        except torch.OutOfMemoryError:
            refused += 1
            batch -= 10240
    assert refused == 30, refused
    for _ in range(STEPS):
        train_step(model, optimizer)


def skipped_batches():
    """A batch that is too large now and then is skipped, and training goes on."""
    model, optimizer = trainer()
    for i in range(2 * STEPS):
        try:
            train_step(model, optimizer, 512 << 10 if i % 40 == 20 else 256)
        except torch.OutOfMemoryError:
            optimizer.zero_grad()


def tried_again_inside():
    """The batch is halved inside the except block, where the traceback still holds the failed step's tensors."""
    model, optimizer = trainer()
    for _ in range(20):
        train_step(model, optimizer)
    try:
        train_step(model, optimizer, 280 << 10)
    except torch.OutOfMemoryError:
        train_step(model, optimizer, 140 << 10)


# ---- nearly ----


def recovered():
    """The cache is flushed for a request that then fits: no error, but pressure."""
    world["weights"] = [megabytes(100) for _ in range(40)]
    for _ in range(4):
        cached = [megabytes(200) for _ in range(15)]
        del cached
        batch = megabytes(3000)
        del batch
        torch._C.launch(200)


def thrashing():
    """empty_cache() in every step."""
    model, optimizer = trainer()
    for _ in range(STEPS):
        train_step(model, optimizer, 8192)
        torch.cuda.empty_cache()


# ---- peaks that differ ----


def numbers(count, low, high):
    """Reproducible: Park and Miller's generator."""
    state = 20250101
    for _ in range(count):
        state = state * 48271 % 2147483647
        yield low + state % (high - low + 1)


def random_batches():
    """Batches of 2 to 64 sequences."""
    model, optimizer = trainer()
    for batch in numbers(2 * STEPS, 2, 64):
        train_step(model, optimizer, batch * 256)


def random_batches_marked():
    """The same with a mark for each step."""
    import ctypes

    mark = getattr(ctypes.CDLL(None), "gpumemtrace_mark", lambda name: None)
    model, optimizer = trainer()
    for batch in numbers(2 * STEPS, 2, 64):
        train_step(model, optimizer, batch * 256)
        mark(b"step")


def random_lengths():
    """Requests of random length to a server."""
    model = world["model"] = make_model(6)
    for length in numbers(4 * STEPS, 64, 8192):
        with torch.no_grad():
            model(torch.randn(length, WIDTH))


def sometimes_long():
    """One batch in about nine is eight times as long as the others."""
    model, optimizer = trainer()
    for number in numbers(2 * STEPS, 0, 8):
        train_step(model, optimizer, 8192 if number == 4 else 1024)


if __name__ == "__main__":
    ending.main(globals())
