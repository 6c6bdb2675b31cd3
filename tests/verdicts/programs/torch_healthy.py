"""Training and serving scripts on the stand-in for PyTorch in which nothing is wrong.

Each function is a script that uses memory in an ordinary way, which looks like growth or instability to a careless
judge.
"""
import collections
import functools
import gc

import ending
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn import TransformerEncoderLayer
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader
from transformers import DynamicCache
from vllm.v1.worker.gpu_model_runner import GPUModelRunner

STEPS = 160
WIDTH = 2048

world = {}  # what lives as long as the script


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
    return loss.item()


def trainer(depth=3):
    model = make_model(depth)
    optimizer = torch.optim.Adam(model.parameters())
    world["trainer"] = model, optimizer
    return model, optimizer


@torch.no_grad()
def evaluate(model, batches=4, batch=512):
    return [F.mse_loss(model(torch.randn(batch, WIDTH)), torch.randn(batch, WIDTH)).item() for _ in range(batches)]


# ---- training ----


def training():
    """Adam's state comes with the first step; then each step is like the one before."""
    model, optimizer = trainer()
    for _ in range(STEPS):
        train_step(model, optimizer)


def one_step():
    """A smoke test of a large model: loaded, one step, the end."""
    model, optimizer = trainer(40)
    train_step(model, optimizer)


def two_steps():
    """Two steps: the second one has no state to make."""
    model, optimizer = trainer(20)
    train_step(model, optimizer)
    train_step(model, optimizer)


def forward_only():
    """A single forward pass of a large model whose output is kept."""
    model = world["model"] = make_model(60)
    with torch.no_grad():
        world["output"] = model(torch.randn(512, WIDTH))


def load_only():
    """Weights are loaded, and the program ends."""
    world["model"] = make_model(120)


def load_twice():
    """A checkpoint is loaded beside the model and copied into it."""
    world["model"] = make_model(60)
    checkpoint_weights = make_model(60)
    del checkpoint_weights
    for _ in range(STEPS):
        evaluate(world["model"], 1)


def epochs():
    """Training and evaluation in turn; metrics are numbers."""
    model, optimizer = trainer()
    metrics = []
    for _ in range(10):
        for _ in range(14):
            train_step(model, optimizer)
        metrics += evaluate(model)


def two_phases():
    """The head is trained first, then all layers: gradients and state of the rest come with the second phase."""
    body, head = make_model(4), nn.Linear(WIDTH, WIDTH).cuda()
    model = nn.Sequential(body, head)
    body.requires_grad_(False)
    optimizer = torch.optim.Adam(head.parameters())
    world["first"] = model, optimizer
    for _ in range(STEPS // 2):
        train_step(model, optimizer)
    body.requires_grad_(True)
    optimizer = torch.optim.Adam(model.parameters())
    world["second"] = optimizer
    for _ in range(STEPS):
        train_step(model, optimizer)


def low_rank():
    """LoRA: frozen weights, small adapters, state for the adapters alone."""
    base = make_model(6)
    base.requires_grad_(False)
    adapter = nn.Sequential(nn.Linear(WIDTH, 16), nn.Linear(16, WIDTH)).cuda()
    model = nn.Sequential(base, adapter)
    optimizer = torch.optim.AdamW(adapter.parameters())
    world["model"] = model, optimizer
    for _ in range(STEPS):
        train_step(model, optimizer)


def accumulation():
    """Gradients of four small batches are added up before each step."""
    model, optimizer = trainer()
    for _ in range(STEPS // 2):
        for _ in range(4):
            F.mse_loss(model(torch.randn(64, WIDTH)), torch.randn(64, WIDTH)).backward()
        optimizer.step()
        optimizer.zero_grad()


def checkpointing():
    """Activations are computed again in backward."""
    blocks = [make_model(2) for _ in range(4)]
    optimizer = torch.optim.SGD([p for block in blocks for p in block.parameters()], momentum=0.9)
    world["blocks"] = blocks, optimizer
    for _ in range(STEPS // 2):
        x = torch.randn(256, WIDTH, requires_grad=True)
        for block in blocks:
            x = checkpoint(block, x)
        x.mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def distributed():
    """DistributedDataParallel: buckets are made once."""
    model = nn.parallel.DistributedDataParallel(make_model(8))
    optimizer = torch.optim.SGD(model.parameters(), momentum=0.9)
    world["model"] = model, optimizer
    for _ in range(STEPS):
        train_step(model, optimizer)


def adversarial():
    """Two networks and two optimizers that are trained in turn."""
    first, second = make_model(), make_model()
    optimizers = torch.optim.Adam(first.parameters()), torch.optim.Adam(second.parameters())
    world["all"] = first, second, optimizers
    for _ in range(STEPS):
        F.mse_loss(second(first(torch.randn(128, WIDTH)).detach()), torch.randn(128, WIDTH)).backward()
        optimizers[1].step()
        optimizers[1].zero_grad()
        F.mse_loss(second(first(torch.randn(128, WIDTH))), torch.randn(128, WIDTH)).backward()
        optimizers[0].step()
        for optimizer in optimizers:
            optimizer.zero_grad()


def mixed_precision():
    """Half-precision copies of the weights in each step, single-precision ones for the optimizer."""
    model, optimizer = trainer()
    for _ in range(STEPS):
        halves = [p.half() for p in model.parameters()]
        train_step(model, optimizer)
        del halves


def moving_average():
    """One copy of the weights, updated in place."""
    model, optimizer = trainer()
    world["average"] = [torch.empty_like(p) for p in model.parameters()]
    for _ in range(STEPS):
        train_step(model, optimizer)


def best_weights():
    """The best weights so far are kept: one copy, replaced now and then."""
    model, optimizer = trainer()
    for epoch in range(16):
        for _ in range(10):
            train_step(model, optimizer)
        if epoch in (0, 1, 3, 4, 8, 13):
            world["best"] = [p.detach().clone() for p in model.parameters()]


def loader():
    """Batches are pinned and prefetched, two at a time."""
    model, optimizer = trainer()
    for batch in DataLoader([(WIDTH,)] * (128 * STEPS), batch_size=128, pin_memory=True):
        F.mse_loss(model(batch.cuda(non_blocking=True)), torch.randn(128, WIDTH)).backward()
        optimizer.step()
        optimizer.zero_grad()


def replay_memory():
    """A replay memory of 60 transitions, full after a fifth of the run."""
    model, optimizer = trainer()
    world["replay"] = replay = collections.deque(maxlen=60)
    for _ in range(2 * STEPS):
        replay.append(torch.randn(64, 1024))
        train_step(model, optimizer, 64)


def algorithm_search():
    """The third step tries algorithms with large workspaces, once."""
    model, optimizer = trainer()
    for i in range(STEPS):
        train_step(model, optimizer)
        if i == 2:
            for size in range(1, 9):
                torch.empty(size << 24)


def convolutions():
    """Convolutions by cuDNN, with a workspace for each and a search with large ones for each new shape."""
    model = nn.Sequential(nn.Conv2d(16, 64), nn.ReLU(), nn.Conv2d(64, 64), nn.ReLU()).cuda()
    optimizer = torch.optim.SGD(model.parameters())
    world["model"] = model, optimizer
    for _ in range(STEPS):
        model(torch.randn(8, 16, 128, 128)).mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def profile_three_steps():
    """Three steps for a profile."""
    model, optimizer = trainer(10)
    for _ in range(3):
        train_step(model, optimizer)


def compiled():
    """The first call compiles for its shape and tunes kernels; all later calls have that shape."""
    model, optimizer = trainer()
    forward = world["forward"] = torch.compile(lambda x: model(x))
    for _ in range(STEPS):
        F.mse_loss(forward(torch.randn(256, WIDTH)), torch.randn(256, WIDTH)).backward()
        optimizer.step()
        optimizer.zero_grad()


def transformer():
    """A small language model."""
    embedding, head = nn.Embedding(4096, 512).cuda(), nn.Linear(512, 4096).cuda()
    layers = nn.ModuleList([TransformerEncoderLayer(512) for _ in range(3)]).cuda()
    optimizer = torch.optim.AdamW([p for m in (embedding, layers, head) for p in m.parameters()])
    criterion = nn.CrossEntropyLoss()
    world["model"] = embedding, layers, head, optimizer
    for _ in range(STEPS // 2):
        tokens = torch.zeros(8, 128, dtype="int64")
        x = embedding(tokens)
        for layer in layers:
            x = layer(x)
        criterion(head(x), tokens).backward()
        optimizer.step()
        optimizer.zero_grad()


def early_stop():
    """Training ends by an exception that the script raises itself."""
    model, optimizer = trainer()
    for i in range(STEPS):
        train_step(model, optimizer)
        if i == STEPS // 2:
            raise StopIteration("no improvement for ten epochs")


def interrupted():
    """The user stops the run with Control-C in the middle of a step."""
    import signal

    model, optimizer = trainer()
    for i in range(STEPS):
        loss = F.mse_loss(model(torch.randn(256, WIDTH)), torch.randn(256, WIDTH))
        if i == STEPS // 2:
            signal.raise_signal(signal.SIGINT)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def cache_emptied_between_epochs():
    """empty_cache() once an epoch: a few segments go and come."""
    model, optimizer = trainer()
    for _ in range(8):
        for _ in range(16):
            train_step(model, optimizer)
        torch.cuda.empty_cache()


def pruned():
    """A large model's layers are dropped one after the other while it is trained."""
    blocks = [make_model(2) for _ in range(12)]
    world["blocks"] = blocks
    while len(blocks) > 2:
        for _ in range(14):
            x = torch.randn(128, WIDTH)
            with torch.no_grad():
                for block in blocks:
                    x = block(x)
        blocks.pop()


def ensemble():
    """Twelve models are loaded one after the other with one forward pass each; then all of them serve."""
    models = world["models"] = []
    for _ in range(12):
        models.append(make_model(4))
        evaluate(models[-1], 1)
    for i in range(STEPS):
        evaluate(models[i % 12], 1)


# ---- recorded for a while only, where the script runs with SNAPSHOT_LATE ----


def recorded_forward():
    """The history begins when the model has long been trained, and holds one forward pass with its activations."""
    model, optimizer = trainer(24)
    train_step(model, optimizer)
    ending.record()
    world["loss"] = F.mse_loss(model(torch.randn(1024, WIDTH)), torch.randn(1024, WIDTH))


def recorded_step():
    """The history holds one whole step."""
    model, optimizer = trainer(24)
    train_step(model, optimizer)
    ending.record()
    train_step(model, optimizer)


def recorded_first_step():
    """The history holds the first step, with the optimizer's state."""
    model, optimizer = trainer(24)
    ending.record()
    train_step(model, optimizer)


# ---- serving ----


def serving():
    """Inference with a model that is loaded once."""
    model = world["model"] = make_model(6)
    for _ in range(2 * STEPS):
        evaluate(model, 1)


def warm_caches():
    """Key/value caches are made for all slots before the first request."""
    model = world["model"] = make_model(6)
    world["caches"] = [torch.zeros(2, 256, 1024) for _ in range(32)]
    for _ in range(2 * STEPS):
        evaluate(model, 1)


def generation():
    """Each request's key/value cache grows token by token and goes with the request."""
    model = world["model"] = make_model(2)
    for _ in range(12):
        world["cache"] = cache = DynamicCache(4)
        with torch.no_grad():
            for _ in range(24):
                for layer in range(4):
                    cache.update(torch.randn(1, 16, 4096), torch.randn(1, 16, 4096), layer)
                model(torch.randn(64, WIDTH))


def paged_cache():
    """All pages of the key/value cache are made at the start, most of the device."""
    model = world["model"] = make_model(6)
    world["runner"] = runner = GPUModelRunner()
    runner.initialize_kv_cache(16, 256 << 20)
    for _ in range(2 * STEPS):
        evaluate(model, 1)


def shared_graphs():
    """CUDA graphs for eight batch sizes are captured at the start in one shared pool, and replayed from then on."""
    model = make_model(4)
    pool = torch.cuda.graph_pool_handle()
    graphs = []
    for batch in (512, 256, 128, 64, 32, 16, 8, 4):
        graph, tokens = torch.cuda.CUDAGraph(), torch.randn(batch, WIDTH)
        with torch.cuda.graph(graph, pool), torch.no_grad():
            graphs.append((graph, tokens, model(tokens)))
    world["graphs"] = model, graphs
    for i in range(3 * STEPS):
        graphs[i % 8][0].replay()
        world["tokens"] = torch.randn(8, WIDTH)


def bounded_cache():
    """lru_cache of 24 results, full after a tenth of the run."""
    embed = world["embed"] = functools.lru_cache(maxsize=24)(lambda text: torch.randn(256, 1024))
    model = world["model"] = make_model()
    for i in range(2 * STEPS):
        embed(i)
        evaluate(model, 1, 64)


def saturating_cache():
    """Position tables for 40 lengths are made when a length first comes; lengths repeat."""
    model = world["model"] = make_model()
    tables = world["tables"] = {}
    state = 1
    for _ in range(3 * STEPS):
        state = state * 48271 % 2147483647
        length = state % 40
        if length not in tables:
            tables[length] = torch.zeros(256 + length, 512)
        evaluate(model, 1, 64)


def models_in_turn():
    """Five models are compared; each is dropped before the next one is loaded."""
    for _ in range(5):
        model = make_model(10)
        for _ in range(STEPS // 5):
            evaluate(model, 1)
        del model


def streams():
    """Batches are copied on a side stream and handed over."""
    model, optimizer = trainer()
    side = torch.cuda.Stream()
    for _ in range(STEPS):
        with torch.cuda.stream(side):
            batch = torch.randn(128, WIDTH)
        batch.record_stream(side)
        side.synchronize()
        F.mse_loss(model(batch), torch.randn(128, WIDTH)).backward()
        optimizer.step()
        optimizer.zero_grad()


def cycles_collected():
    """A little cyclic garbage, collected in every step."""

    class Episode:
        def __init__(self):
            self.frames = torch.randn(64, 1024)
            self.steps = [self]

    model, optimizer = trainer()
    for _ in range(STEPS):
        Episode()
        gc.collect(1)
        train_step(model, optimizer)


def data_set_on_device():
    """The whole data set is copied to the device before training."""
    world["data"] = [torch.randn(64, 1024) for _ in range(200)]
    model, optimizer = trainer()
    for _ in range(STEPS):
        train_step(model, optimizer)


if __name__ == "__main__":
    ending.main(globals())
