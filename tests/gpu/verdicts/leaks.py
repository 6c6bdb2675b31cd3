"""Twelve PyTorch programs that keep memory step after step: leaks.py NAME END
END   end      the program returns
      raises   an exception ends it
      exit     sys.exit(3)
      _exit    os._exit(0), which frees nothing
Each keeps some 8 MiB a step in a place of its own; the function `keep_NAME` does it."""
import collections
import functools
import gc
import os
import sys
import threading

import torch

STEPS = 30
FLOATS = 2 << 20  # 8 MiB

model = torch.nn.Sequential(torch.nn.Linear(1024, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1024)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
data = torch.randn(2048, 1024, device="cuda")


def train_step():
    optimizer.zero_grad(set_to_none=True)
    loss = model(data).square().mean()
    loss.backward()
    optimizer.step()
    return loss


losses = []


def keep_losses(step):
    """The loss with its graph: what backward saved is kept."""
    output = model(data)
    losses.append(output.square().mean())


@functools.lru_cache(maxsize=None)
def keep_lru_cache(step):
    return torch.ones(FLOATS, device="cuda")


sessions = {}


def keep_sessions(step):
    sessions[f"session-{step}"] = {"state": torch.zeros(FLOATS, device="cuda"), "turns": step}


activations = []


def install_hook():
    model[0].register_forward_hook(lambda module, arguments, output: activations.append(output.detach()))


def keep_hook(step):
    with torch.no_grad():
        model(data)


failures = []


def fail(step):
    scratch = torch.ones(FLOATS, device="cuda")
    raise ValueError(f"step {step} of {scratch.numel()}")


def keep_traceback(step):
    try:
        fail(step)
    except ValueError as error:
        failures.append(error)


class Trainer:
    def __init__(self):
        self.outputs = []

    def keep_attribute(self, step):
        with torch.no_grad():
            self.outputs.append(model(data))


trainer = Trainer()


def keep_attribute(step):
    trainer.keep_attribute(step)


class Cache:
    """A key/value cache of a server that forgets to drop what a request left."""

    def __init__(self):
        self.layers = collections.defaultdict(list)

    def keep_kv(self, step):
        for layer in range(4):
            self.layers[layer].append(torch.randn(1, 8, 1024, 64, device="cuda"))


cache = Cache()


def keep_kv(step):
    cache.keep_kv(step)


scores = []


def evaluate():
    model.eval()
    with torch.no_grad():
        scores.append(model(data))
    model.train()


def keep_evaluation(step):
    """Rises in the evaluation between epochs alone."""
    for _ in range(5):
        train_step()
    evaluate()


history = None


def keep_concatenation(step):
    """One tensor replaced by a longer one."""
    global history
    row = torch.ones(1, FLOATS, device="cuda")
    history = row if history is None else torch.cat([history, row])


per_thread = {}


def keep_threads(step):
    def work():
        per_thread[threading.get_ident(), step] = torch.ones(FLOATS, device="cuda")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def keep_default(step, kept=[]):
    kept.append(torch.ones(FLOATS, device="cuda"))


class Node:
    def __init__(self):
        self.self = self
        self.buffer = torch.ones(FLOATS, device="cuda")


def keep_cycles(step):
    """Garbage in cycles; the collector is off, as some training loops have it."""
    Node()


def main(name, end):
    keep = globals()["keep_" + name]
    if name == "hook":
        install_hook()
    if name == "cycles":
        gc.disable()
    for step in range(STEPS):
        train_step()
        keep(step)
    torch.cuda.synchronize()
    print(f"live {torch.cuda.memory_allocated()} reserved {torch.cuda.memory_reserved()}", flush=True)
    if end == "raises":
        raise RuntimeError("the run ends by an exception")
    if end == "exit":
        sys.exit(3)
    if end == "_exit":
        os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
