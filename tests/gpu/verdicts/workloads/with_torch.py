"""Programs with PyTorch alone and its companions, as people write them: with_torch.py NAME.
../workloads.py has their labels."""
import asyncio
import collections
import concurrent.futures
import functools
import gc
import random
import sys

import torch

F = torch.nn.functional
torch.manual_seed(0)
random.seed(0)


def perceptron(width=1024, layers=4):
    return torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.ReLU())
                                 for _ in range(layers)]).cuda()


def fit(model, optimizer, steps, batch=512, width=1024):
    for _ in range(steps):
        loss = model(torch.randn(batch, width, device="cuda")).square().mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()


# ---- graphs that live on ----


class Recurrent(torch.nn.Module):
    def __init__(self, width=512):
        super().__init__()
        self.cell = torch.nn.GRUCell(width, width)

    def forward(self, chunk, hidden):
        for row in chunk:
            hidden = self.cell(row, hidden)
        return hidden


def backpropagate(detach):
    model = Recurrent().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    hidden = torch.zeros(64, 512, device="cuda")
    for _ in range(40):
        hidden = model(torch.randn(8, 64, 512, device="cuda"), hidden.detach() if detach else hidden)
        optimizer.zero_grad()
        hidden.square().mean().backward(retain_graph=not detach)
        with torch.no_grad():  # what optimizer.step() would do, without the check of versions
            for parameter in model.parameters():
                parameter.data.add_(parameter.grad, alpha=-1e-6)


def truncated_forgotten():
    """The state is never detached: each step goes through the graphs of all earlier ones."""
    backpropagate(False)


def truncated():
    backpropagate(True)


class Square(torch.autograd.Function):
    """Keeps its output as an attribute: a cycle that only the collector frees."""

    @staticmethod
    def forward(ctx, values):
        ctx.result = values * values
        return ctx.result

    @staticmethod
    def backward(ctx, gradient):
        return 2 * gradient * ctx.result.sqrt()


class SquareSaved(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values):
        ctx.save_for_backward(values)
        return values * values

    @staticmethod
    def backward(ctx, gradient):
        values, = ctx.saved_tensors
        return 2 * gradient * values


def apply_function(function, steps=80):
    model = perceptron(layers=2)
    for _ in range(steps):
        function.apply(model(torch.randn(2048, 1024, device="cuda"))).mean().backward()


def function_attribute():
    """The collector is off, for the sake of even steps."""
    gc.disable()
    apply_function(Square)


def function_saved():
    apply_function(SquareSaved)


class Generator(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = perceptron(512, 3)
        self.samples = []

    def forward(self, noise):
        sample = self.body(noise)
        self.samples.append(sample)
        return sample


def adversarial(keep):
    generator, critic = Generator(), perceptron(512, 3)
    optimizers = [torch.optim.Adam(m.parameters(), lr=1e-5) for m in (generator, critic)]
    for _ in range(80):
        fake = generator(torch.randn(1024, 512, device="cuda"))
        optimizers[1].zero_grad()
        (critic(fake.detach()).mean() - critic(torch.randn(1024, 512, device="cuda")).mean()).backward()
        optimizers[1].step()
        optimizers[0].zero_grad()
        (-critic(fake).mean()).backward()
        optimizers[0].step()
        if not keep:
            generator.samples.clear()


def adversarial_keeps():
    """The samples are kept for a picture that is never drawn."""
    adversarial(True)


def adversarial_clears():
    adversarial(False)


# ---- what is remembered in Python ----


class Positions:
    """Masks and tables by length; the method's cache holds each one for ever."""

    @functools.lru_cache(maxsize=None)
    def mask(self, length):
        return torch.full((length, length), float("-inf"), device="cuda").triu(1)


def attend(masks, length):
    query = torch.randn(2, 4, length, 32, device="cuda")
    return F.scaled_dot_product_attention(query, query, query, attn_mask=masks.mask(length))


def masks_by_length():
    """Nearly every request has a length of its own."""
    masks = Positions()
    for step in range(150):
        attend(masks, 900 + step * 37 % 149)


def masks_by_bucket():
    """Lengths are rounded up to one of six."""
    masks = Positions()
    for step in range(150):
        attend(masks, 256 * (1 + step * 37 % 6))


class Tables:
    """One table, replaced when a longer one is needed."""

    def __init__(self):
        self.cosine = None

    def get(self, length):
        if self.cosine is None or len(self.cosine) < length:
            angles = torch.outer(torch.arange(length, device="cuda"), torch.rand(512, device="cuda"))
            self.cosine = angles.cos()
        return self.cosine[:length]


def tables_extended():
    tables, model = Tables(), perceptron(512, 2)
    with torch.no_grad():
        for _ in range(200):
            length = random.randint(16, 2048)
            model(torch.randn(length, 512, device="cuda") * tables.get(length))


callbacks = []


def schedule(batch, result):
    callbacks.append(lambda: (result - batch).square().mean().item())


def closures_kept():
    """Reports of the last steps are made at the end; each closure holds its batch and its result."""
    model = perceptron()
    for _ in range(60):
        batch = torch.randn(2048, 1024, device="cuda")
        with torch.no_grad():
            schedule(batch, model(batch))
    print(sum(callback() for callback in callbacks[-4:]))


def closures_called():
    model = perceptron()
    for _ in range(60):
        batch = torch.randn(2048, 1024, device="cuda")
        with torch.no_grad():
            schedule(batch, model(batch))
        if len(callbacks) == 4:
            print(sum(callback() for callback in callbacks))
            callbacks.clear()


failed = []


def process(model, batch):
    result = model(batch)
    if result.isfinite().all():
        raise ValueError("finite, which this program takes for an error")
    return result


def errors_kept():
    """Errors are gathered for a report, with their tracebacks and thus the locals of the frames."""
    model = perceptron()
    for step in range(60):
        try:
            process(model, torch.randn(1024, 1024, device="cuda"))
        except ValueError as error:
            failed.append((step, error))


def errors_as_text():
    model = perceptron()
    for step in range(60):
        try:
            process(model, torch.randn(1024, 1024, device="cuda"))
        except ValueError as error:
            failed.append((step, str(error)))


class Episode:
    def __init__(self, agent):
        self.agent, self.states = agent, []
        if agent.keep:
            agent.episodes.append(self)

    def play(self, length):
        state = torch.zeros(256, 1024, device="cuda")
        for _ in range(length):
            with torch.no_grad():
                state = self.agent.model(state + torch.randn_like(state))
            self.states.append(state)


class Agent:
    def __init__(self, keep):
        self.model, self.keep, self.episodes = perceptron(layers=2), keep, []


def episodes_kept():
    """Each episode of an agent stays in its list, states and all."""
    agent = Agent(True)
    for _ in range(50):
        Episode(agent).play(12)


def episodes_dropped():
    agent = Agent(False)
    for _ in range(50):
        Episode(agent).play(12)


def replay(limit, steps=400):
    """A store of experiences on the GPU, of which batches are drawn."""
    store = collections.deque(maxlen=limit)
    model = perceptron(512, 2)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(steps):
        store.append(torch.randn(256, 512, device="cuda"))
        batch = torch.cat([random.choice(store) for _ in range(4)])
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()


def replay_unbounded():
    replay(None)


def replay_bounded():
    replay(64)


class Node:
    """Parent and children know each other: garbage in cycles."""

    def __init__(self, parent=None):
        self.parent, self.children, self.value = parent, [], torch.randn(512, 1024, device="cuda")
        if parent:
            parent.children.append(self)


def search():
    root = Node()
    for _ in range(6):
        Node(random.choice([root, *root.children]))
    return torch.stack([child.value.mean() for child in root.children]).max().item()


def trees_uncollected():
    gc.disable()
    for _ in range(40):
        search()


def trees_collected():
    for step in range(40):
        search()
        if step % 5 == 4:
            gc.collect()


def norms_kept():
    """Norms of gradients, each a tensor of one element that is never read: 512 bytes a parameter and step."""
    model = perceptron(256, 12)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(200):
        fit(model, optimizer, 1, 64, 256)
        log_norms(model)


norms = collections.defaultdict(list)


def log_norms(model):
    for name, parameter in model.named_parameters():
        norms[name].append(parameter.grad.norm())


# ---- serving ----

results = {}


def infer(model, request):
    with torch.inference_mode():
        results[request] = model(torch.randn(1024, 1024, device="cuda"))
    return request


def futures_kept():
    """Results by request, for clients that never ask again."""
    model = perceptron()
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda request: infer(model, request), range(120)))


def futures_taken():
    model = perceptron()
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for request in pool.map(lambda request: infer(model, request), range(120)):
            results.pop(request).sum().item()


async def handle(model, request, sessions):
    await asyncio.sleep(0)
    sessions[request] = torch.randn(512, 1024, device="cuda")
    with torch.inference_mode():
        model(sessions[request])
    await asyncio.sleep(0)
    if request % 3:  # one client in three hangs up, and its session stays
        del sessions[request]


async def serve(model, count):
    sessions = {}
    for first in range(0, count, 6):
        await asyncio.gather(*[handle(model, request, sessions) for request in range(first, first + 6)])


def sessions_hang_up():
    asyncio.run(serve(perceptron(), 240))


# ---- CUDA graphs, streams, allocator settings ----


class Graphs:
    """A captured forward pass for each batch size."""

    def __init__(self, model):
        self.model, self.graphs = model, {}

    def run(self, batch):
        if batch not in self.graphs:
            self.graphs[batch] = self.capture(batch)
        graph, data, result = self.graphs[batch]
        data.normal_()
        graph.replay()
        return result

    def capture(self, batch):
        data = torch.randn(batch, 1024, device="cuda")
        graph = torch.cuda.CUDAGraph()
        with torch.no_grad():
            self.model(data)
            with torch.cuda.graph(graph):
                result = self.model(data)
        return graph, data, result


def graphs_few():
    graphs = Graphs(perceptron())
    for step in range(300):
        graphs.run((64, 128, 256, 512)[step * 7 % 4])


def graphs_each_size():
    """Nearly every batch has a size of its own, and each graph its pool."""
    graphs = Graphs(perceptron())
    for step in range(120):
        graphs.run(512 + step)


def overlapped():
    """Copies and work on two streams; record_stream keeps what is in use."""
    model, side = perceptron(), torch.cuda.Stream()
    host = torch.randn(512, 1024).pin_memory()
    for _ in range(200):
        with torch.cuda.stream(side):
            batch = host.to("cuda", non_blocking=True)
        torch.cuda.current_stream().wait_stream(side)
        batch.record_stream(torch.cuda.current_stream())
        with torch.no_grad():
            model(batch)


def lengths_vary():
    """Random lengths; the environment chooses the allocator's settings."""
    layer = torch.nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 3, enable_nested_tensor=False).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(120):
        loss = model(torch.randn(8, random.choice((64, 96, 160, 224, 256)), 256, device="cuda")).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def pinned_kept():
    """Batches are pinned ahead, and the list of them is never cut."""
    model, batches = perceptron(), []
    for _ in range(60):
        batches.append(torch.randn(1024, 1024).pin_memory())
        with torch.no_grad():
            model(batches[-1].to("cuda", non_blocking=True))


def pinned_ring():
    model, ring = perceptron(), collections.deque(maxlen=4)
    for _ in range(100):
        ring.append(torch.randn(1024, 1024).pin_memory())
        with torch.no_grad():
            model(ring[-1].to("cuda", non_blocking=True))


def recorded():
    """PyTorch's own recorder beside the shim."""
    torch.cuda.memory._record_memory_history(max_entries=10000)
    model = perceptron()
    fit(model, torch.optim.Adam(model.parameters()), 80)
    torch.cuda.memory._record_memory_history(enabled=None)


# ---- optimizers and schedules ----


def optimizers_renewed():
    """A new optimizer for each epoch; the old one goes."""
    model = perceptron()
    for epoch in range(12):
        fit(model, torch.optim.Adam(model.parameters(), lr=0.1 ** epoch), 10)


def optimizers_kept():
    """The old optimizers stay in a list of schedules."""
    model, schedules = perceptron(), []
    for epoch in range(12):
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1 ** epoch)
        schedules.append(torch.optim.lr_scheduler.ConstantLR(optimizer))
        fit(model, optimizer, 10)


def memory_of_lbfgs():
    """L-BFGS keeps the last steps, a fixed number of them."""
    model = perceptron(512, 2)
    optimizer = torch.optim.LBFGS(model.parameters(), history_size=8, max_iter=4)
    data = torch.randn(256, 512, device="cuda")

    def closure():
        optimizer.zero_grad()
        loss = model(data).square().mean()
        loss.backward()
        return loss

    for _ in range(40):
        optimizer.step(closure)


# ---- companions ----


def metrics(reset):
    import torchmetrics

    metric, model = torchmetrics.CatMetric().cuda(), perceptron()
    for _ in range(10):
        for _ in range(8):
            with torch.no_grad():
                metric.update(model(torch.randn(512, 1024, device="cuda")).flatten())
        if reset:
            print(metric.compute().mean().item())
            metric.reset()


def metric_never_reset():
    metrics(False)


def metric_reset():
    metrics(True)


def resnet():
    """Mixed precision, channels last, a cosine schedule."""
    import torchvision

    model = torchvision.models.resnet18(num_classes=10).cuda().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    schedule_of_rates = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 60)
    scaler = torch.amp.GradScaler()
    for _ in range(60):
        images = torch.randn(16, 3, 96, 96, device="cuda").to(memory_format=torch.channels_last)
        with torch.autocast("cuda", torch.float16):
            loss = F.cross_entropy(model(images), torch.randint(10, (16,), device="cuda"))
        optimizer.zero_grad(set_to_none=True)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        schedule_of_rates.step()


def lightning(clear):
    import lightning.pytorch as pl

    class Module(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.body, self.outputs = perceptron(512, 3), []

        def training_step(self, batch, index):
            result = self.body(batch[0])
            self.outputs.append(result.detach())
            return result.square().mean()

        def on_train_epoch_end(self):
            if clear:
                self.outputs.clear()

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters())

    data = torch.utils.data.TensorDataset(torch.randn(16 * 1024, 512))
    pl.Trainer(max_epochs=5, logger=False, enable_checkpointing=False, enable_progress_bar=False,
               enable_model_summary=False, accelerator="gpu", devices=1).fit(
        Module(), torch.utils.data.DataLoader(data, 1024))


def lightning_keeps():
    lightning(False)


def lightning_clears():
    lightning(True)


# ---- out of memory ----


def oom_attention():
    """One matrix of attention scores is larger than the device."""
    keys = torch.randn(1, 1 << 17, 64, device="cuda")
    (keys @ keys.transpose(1, 2)).softmax(-1)


spare = []


def oom_holes():
    """Small results that live on split each segment of the large buffers before them."""
    kept = []
    while torch.cuda.memory_reserved() < 2.6 * 2 ** 30:
        whole = torch.empty(20 << 20, dtype=torch.uint8, device="cuda")
        del whole
        spare.append(torch.empty(18 << 20, dtype=torch.uint8, device="cuda"))
        kept.append(torch.empty(2 << 20, dtype=torch.uint8, device="cuda"))
    spare.clear()
    torch.empty(1 << 30, dtype=torch.uint8, device="cuda")


def oom_replay():
    """Experiences without a limit, up to the limit of the process's share."""
    torch.cuda.set_per_process_memory_fraction(0.01)
    replay(None, 100000)


def oom_retried():
    """The failed step is tried again inside the except block, where the traceback still has its tensors."""
    model = perceptron(2048, 8)
    try:
        model(torch.randn(48 << 10, 2048, device="cuda")).sum().backward()
    except torch.OutOfMemoryError:
        model(torch.randn(24 << 10, 2048, device="cuda")).sum().backward()


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    torch.cuda.synchronize()
    print(f"live {torch.cuda.memory_allocated()} reserved {torch.cuda.memory_reserved()}", flush=True)
