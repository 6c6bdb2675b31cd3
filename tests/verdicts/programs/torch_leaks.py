"""Training and serving scripts on the stand-in for PyTorch whose memory grows.

Each function is a script; what grows is kept in a global, as scripts keep things, and allocated below the function that
cases.py names. Everything else in the script is bounded.
"""
import functools
import gc
import logging

import ending
import torch
import torch.nn.functional as F
from torch import nn

STEPS = 160
WIDTH = 2048


def make_model(depth=3, width=WIDTH):
    layers = []
    for _ in range(depth):
        layers += [nn.Linear(width, width), nn.ReLU()]
    return nn.Sequential(*layers).cuda()


def clean_step(model, optimizer, batch=256):
    loss = F.mse_loss(model(torch.randn(batch, WIDTH)), torch.randn(batch, WIDTH))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


def trainer():
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters())
    return model, optimizer


world = {}  # what lives as long as the script


def keep(name, value):
    world.setdefault(name, []).append(value)


# ---- training ----


def collect_prediction(model):
    keep("predictions", model(torch.randn(256, WIDTH)).detach())


def predictions():
    """Predictions are appended to a list on the device, to be looked at in the end."""
    model, optimizer = world["trainer"] = trainer()
    for _ in range(STEPS):
        clean_step(model, optimizer)
        collect_prediction(model)


def validate_epoch(model):
    total = torch.zeros(1)
    for _ in range(4):
        total += F.mse_loss(model(torch.randn(128, WIDTH)), torch.randn(128, WIDTH))
    keep("validation losses", total)


def validation_graphs():
    """Validation without no_grad(): each epoch's loss is kept with the graph of all its batches."""
    model, optimizer = world["trainer"] = trainer()
    for _ in range(14):
        for _ in range(14):
            clean_step(model, optimizer)
        validate_epoch(model)


def step_with_graph(model, optimizer):
    loss = F.mse_loss(model(torch.randn(64, WIDTH)), torch.randn(64, WIDTH))
    loss.backward(retain_graph=True)
    optimizer.step()
    optimizer.zero_grad()
    keep("losses", loss)


def retained_graphs():
    """losses.append(loss) after backward(retain_graph=True): each loss holds its step's activations."""
    model, optimizer = world["trainer"] = trainer()
    for _ in range(STEPS):
        step_with_graph(model, optimizer)


def recurrent_step(cell, hidden):
    return torch.Tensor.__add__(cell(hidden), hidden)


def hidden_state():
    """A recurrent network's hidden state is carried from batch to batch without detach()."""
    cell = nn.Linear(WIDTH, WIDTH).cuda()
    hidden = torch.zeros(256, WIDTH)
    for _ in range(2 * STEPS):
        hidden = recurrent_step(cell, hidden)
    world.update(cell=cell, hidden=hidden)


def watch(module, inputs, output):
    keep("activations", output)


def hooked_step(model):
    with torch.no_grad():
        model(torch.randn(128, WIDTH))


def hooks():
    """A forward hook appends every activation to a list for a plot."""
    model = world["model"] = make_model(2)
    for module in model:
        module.register_forward_hook(watch)
    for _ in range(STEPS):
        hooked_step(model)


def average_weights(model):
    keep("averages", [p.detach().clone() for p in model.parameters()])


def weight_copies():
    """At the end of each epoch a copy of the weights stays on the device, for an average that comes last."""
    model, optimizer = world["trainer"] = trainer()
    for _ in range(16):
        for _ in range(10):
            clean_step(model, optimizer)
        average_weights(model)


def start_task(model):
    optimizer = torch.optim.Adam(model.parameters())
    keep("optimizers", optimizer)
    return optimizer


def tasks():
    """Continual learning: each task has its own Adam, and its state stays in a registry."""
    model = world["model"] = make_model(2)
    for _ in range(18):
        optimizer = start_task(model)
        for _ in range(10):
            clean_step(model, optimizer)


def add_adapter(number):
    keep("adapters", nn.Sequential(nn.Linear(WIDTH, 64), nn.Linear(64, WIDTH)).cuda())


def adapters():
    """A low-rank adapter is added for each customer and never removed."""
    model, optimizer = world["trainer"] = trainer()
    for i in range(STEPS):
        add_adapter(i)
        clean_step(model, optimizer)


def store_transition():
    keep("replay", torch.randn(64, 1024))


def replay_memory():
    """A replay memory on the device, without the limit that it was meant to have."""
    model, optimizer = world["trainer"] = trainer()
    for _ in range(2 * STEPS):
        store_transition()
        clean_step(model, optimizer, 64)


def process_batch(model, number):
    features = model(torch.randn(256, WIDTH))
    if number % 5 == 0:
        raise ValueError(f"batch {number} has no labels")
    return features


def tracebacks():
    """Errors are kept for a report: their tracebacks hold frames, those their tensors, with the graph."""
    model, optimizer = world["trainer"] = trainer()
    for i in range(STEPS):
        try:
            process_batch(model, i)
        except ValueError as error:
            keep("errors", error)
        clean_step(model, optimizer)


class Encoder(nn.Module):
    """Makes its input in its own forward(): nothing outside of passes allocates anything."""

    def __init__(self):
        super().__init__()
        self.body = make_model(4)

    def forward(self, number):
        features = self.body(torch.randn(256, WIDTH))
        if number % 17 == 16:
            raise ValueError(f"text {number} is empty")
        return features.shape


def errors_in_forward():
    """Errors of an inference server are kept: their tracebacks hold the features, with the graph."""
    model = world["model"] = Encoder()
    for i in range(4 * STEPS):
        try:
            model(i)
        except ValueError as error:
            keep("errors", error)


def log_statistics(log, model):
    log.info("norms %s", torch.randn(len(list(model.parameters())), 4096))


class Remember(logging.Handler):
    def emit(self, record):
        keep("records", record)


def logged_tensors():
    """A logging handler keeps its records, with the tensors among their arguments."""
    model, optimizer = world["trainer"] = trainer()
    log = logging.getLogger("train")
    log.setLevel(logging.INFO)
    log.addHandler(Remember())
    for _ in range(2 * STEPS):
        clean_step(model, optimizer)
        log_statistics(log, model)


def small_observations():
    """16 KiB in each step: it takes long until the first segment is full."""
    model, optimizer = world["trainer"] = trainer()
    for _ in range(2 * STEPS):
        clean_step(model, optimizer)
        observe_step()


def observe_step():
    keep("observations", torch.randn(64, 64))


def from_the_middle_on():
    """The third of the epochs' losses begins to keep its graph: two thirds of the run leak."""
    model, optimizer = world["trainer"] = trainer()
    for i in range(STEPS):
        clean_step(model, optimizer)
        if i > STEPS // 3:
            collect_prediction(model)


def second_device():
    """Data parallel by hand: outputs are gathered on the second device and stay there."""
    models = [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU()).cuda(d) for d in (0, 1)]
    world["models"] = models
    for _ in range(STEPS):
        for device, model in enumerate(models):
            with torch.no_grad():
                model(torch.Tensor((256, WIDTH), device=f"cuda:{device}"))
        gather_outputs()


def gather_outputs():
    keep("gathered", torch.Tensor((512, WIDTH), device="cuda:1"))


# ---- serving ----


@functools.lru_cache(maxsize=None)
def embed_text(text):
    with torch.no_grad():
        return F.relu(torch.randn(256, 1024))


def embedding_cache():
    """lru_cache(maxsize=None) in front of an encoder; texts do not repeat."""
    model = world["model"] = make_model()
    for i in range(STEPS):
        embed_text(f"text {i}")
        with torch.no_grad():
            model(torch.randn(512, WIDTH))


def append_token(cache):
    """The cache with one more token: a new tensor, and the old one goes."""
    return torch.cat([cache, torch.randn(1, 16, 4096)])


def endless_generation():
    """A key/value cache is made longer by torch.cat() and never reset between requests."""
    model = world["model"] = make_model()
    world["cache"] = torch.randn(1, 16, 4096)
    for _ in range(2 * STEPS):
        with torch.no_grad():
            world["cache"] = append_token(world["cache"])
            model(torch.randn(64, WIDTH))


def open_session(number):
    world.setdefault("sessions", {})[number] = [torch.zeros(2, 64, 1024) for _ in range(4)]


def session_caches():
    """Each session has a key/value cache; sessions do not expire."""
    model = world["model"] = make_model()
    for i in range(STEPS):
        open_session(i)
        with torch.no_grad():
            model(torch.randn(512, WIDTH))


def capture_for(model, length):
    graph = torch.cuda.CUDAGraph()
    tokens = torch.randn(length, WIDTH)
    with torch.cuda.graph(graph), torch.no_grad():
        output = model(tokens)
    world.setdefault("graphs", {})[length] = (graph, tokens, output)


def graph_per_length():
    """A CUDA graph is captured for each length that comes, each with a pool of its own, and all are kept."""
    model = world["model"] = make_model(2)
    for i in range(90):
        capture_for(model, 64 + i)
        for graph, _, _ in list(world["graphs"].values())[-3:]:
            graph.replay()


def prefetch_batch(number):
    keep("prefetched", torch.Tensor((256, 1024), "float32", "cpu").pin_memory())


def pinned_prefetch():
    """The loader's queue of pinned batches has no limit, and batches are dropped too late."""
    model, optimizer = world["trainer"] = trainer()
    for i in range(STEPS):
        prefetch_batch(i)
        clean_step(model, optimizer)


# ---- cycles ----


class Episode:
    """An episode and its steps refer to each other."""

    def __init__(self, size):
        self.frames = torch.randn(size, 1024)
        self.steps = [self]


def play_episode(size):
    Episode(size)


def cycles_without_collector():
    """gc.disable() for speed: cyclic garbage stays until the interpreter ends."""
    gc.disable()
    model, optimizer = world["trainer"] = trainer()
    for _ in range(STEPS):
        play_episode(256)
        clean_step(model, optimizer)


def cycles():
    """Cyclic garbage that the collector finds only once in a while, and then much of it at once."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(4000)
    model = world["model"] = make_model()
    for _ in range(6 * STEPS):
        play_episode(512)
        with torch.no_grad():
            model(torch.randn(512, WIDTH))


if __name__ == "__main__":
    ending.main(globals())
