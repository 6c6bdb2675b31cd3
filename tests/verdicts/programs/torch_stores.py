"""Scripts on the stand-in for PyTorch that keep things: some without a limit, some with one."""
import collections

import ending
import torch
import torch.nn.functional as F
from torch import nn

STEPS = 160
WIDTH = 1024

world = {}  # what lives as long as the script


def make_model(depth=3, width=WIDTH):
    layers = []
    for _ in range(depth):
        layers += [nn.Linear(width, width), nn.ReLU()]
    return nn.Sequential(*layers).cuda()


def trainer(depth=3):
    model = make_model(depth)
    world["trainer"] = model, torch.optim.Adam(model.parameters())
    return world["trainer"]


def clean_step(model, optimizer, batch=256):
    loss = F.mse_loss(model(torch.randn(batch, WIDTH)), torch.randn(batch, WIDTH))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


@torch.no_grad()
def infer(model, batch=256):
    return model(torch.randn(batch, WIDTH))


# ---- growth ----


def log_metric(history, step, value):
    history[step] = value.detach().clone()


def metrics_on_device():
    """A metric per sample is kept on the device in each step."""
    model, optimizer = trainer()
    history = world["history"] = {}
    for i in range(STEPS):
        clean_step(model, optimizer)
        log_metric(history, i, torch.randn(256, WIDTH))


def add_documents(index):
    return torch.cat([index, torch.randn(128, WIDTH)])


def vector_index():
    """An index of embeddings is lengthened by torch.cat in each step."""
    model = world["model"] = make_model()
    index = torch.randn(128, WIDTH)
    for _ in range(STEPS):
        infer(model)
        index = add_documents(index)
    world["index"] = index


def remember_prefix(prefixes, key):
    prefixes[key] = torch.zeros(2, 128, 1024)


def prefix_cache():
    """A server keeps the keys and values of every prefix that it has seen."""
    model = world["model"] = make_model()
    prefixes = world["prefixes"] = {}
    for i in range(2 * STEPS):
        infer(model)
        remember_prefix(prefixes, i)


def save_attention(maps):
    maps.append(torch.randn(8, 128, 128))


def attention_maps():
    """Attention maps are saved for a figure in each evaluation step."""
    model = world["model"] = make_model()
    maps = world["maps"] = []
    for _ in range(2 * STEPS):
        infer(model)
        save_attention(maps)


def try_rate(results, rate):
    model = make_model(2)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(8):
        clean_step(model, optimizer)
    results.append((rate, model))


def search_rates():
    """A search over 24 learning rates keeps the model of each."""
    results = world["results"] = []
    for i in range(24):
        try_rate(results, i)


def add_up_loss(total, model):
    return total + F.mse_loss(model(torch.randn(128, WIDTH)), torch.randn(128, WIDTH))


def summed_losses():
    """The running loss is summed with its graph and never reset."""
    model, optimizer = trainer()
    total = torch.zeros(1, requires_grad=True)
    for _ in range(STEPS):
        clean_step(model, optimizer)
        total = add_up_loss(total, model)
    world["total"] = total


# ---- nothing wrong ----


def bounded_prefix_cache():
    """Keys and values of the 16 prefixes used last."""
    model = world["model"] = make_model()
    prefixes = collections.OrderedDict()
    for i in range(3 * STEPS):
        infer(model)
        remember_prefix(prefixes, i * 7919 % 40)
        prefixes.move_to_end(i * 7919 % 40)
        if len(prefixes) > 16:
            prefixes.popitem(last=False)


def curriculum():
    """Sequences become longer in four stages in the first half of the training."""
    model, optimizer = trainer()
    for i in range(2 * STEPS):
        clean_step(model, optimizer, 128 << min(i // 40, 3))


def evaluation_now_and_then():
    """Every twentieth step is followed by an evaluation with a larger batch."""
    model, optimizer = trainer()
    for i in range(2 * STEPS):
        clean_step(model, optimizer)
        if i % 20 == 19:
            for _ in range(3):
                infer(model, 1024)


def teacher_and_student():
    """A fixed teacher and a student that is trained on its outputs."""
    teacher = world["teacher"] = make_model(6)
    model, optimizer = trainer(2)
    for _ in range(STEPS):
        target = infer(teacher)
        F.mse_loss(model(torch.randn(256, WIDTH)), target).backward()
        optimizer.step()
        optimizer.zero_grad()


def gradual_unfreezing():
    """A layer more is trained from each tenth of the run on, up to the middle."""
    model = world["model"] = make_model(6)
    layers = list(model.parameters())
    optimizers = world["optimizers"] = []
    for i in range(2 * STEPS):
        if i % 32 == 0 and i < STEPS:
            optimizers.append(torch.optim.Adam(layers[len(optimizers):len(optimizers) + 2]))
        F.mse_loss(model(torch.randn(128, WIDTH)), torch.randn(128, WIDTH)).backward()
        for optimizer in optimizers:
            optimizer.step()
        for parameter in layers:
            parameter.grad = None


def fixed_index():
    """An index of fixed capacity, filled in the first tenth and replaced in turn from then on."""
    model = world["model"] = make_model()
    index = collections.deque(maxlen=24)
    for _ in range(2 * STEPS):
        infer(model)
        index.append(torch.randn(64, WIDTH))


def running_mean():
    """A loss per step is reduced to a number, and a mean is kept."""
    model, optimizer = trainer()
    mean = torch.zeros(1)
    for _ in range(STEPS):
        mean = (mean + clean_step(model, optimizer).detach()).detach()
    world["mean"] = mean


def requests_in_flight():
    """Between 1 and 8 requests are in flight, each with its cache."""
    model = world["model"] = make_model()
    flight, state = collections.deque(), 20250101
    for _ in range(3 * STEPS):
        state = state * 48271 % 2147483647
        infer(model)
        if len(flight) < 8 and state % 2:
            flight.append(torch.zeros(2, 64, 1024))
        elif len(flight) > 1:
            flight.popleft()


if __name__ == "__main__":
    ending.main(globals())
