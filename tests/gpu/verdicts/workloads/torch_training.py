"""Trainings with PyTorch, as people write them: torch_training.py NAME. ../workloads.py has their labels."""
import atexit
import copy
import io
import logging
import random
import sys
import weakref

import torch

F, nn = torch.nn.functional, torch.nn
torch.manual_seed(0)
random.seed(0)
device = torch.device("cuda")


class Encoder(nn.Module):
    def __init__(self, width=256, layers=4, heads=4, vocabulary=4096):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(nn.TransformerEncoderLayer(width, heads, 4 * width, batch_first=True)
                                    for _ in range(layers))
        self.head = nn.Linear(width, vocabulary)

    def forward(self, ids):
        hidden = self.embed(ids)
        for block in self.blocks:
            hidden = block(hidden)
        return self.head(hidden)


class ConvNet(nn.Module):
    def __init__(self, width=32, classes=10):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1), nn.BatchNorm2d(2 * width), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(2 * width, 4 * width, 3, padding=1), nn.ReLU())
        self.head = nn.Linear(4 * width, classes)

    def forward(self, images):
        return self.head(self.features(images).mean((2, 3)))


def mlp(*sizes):
    layers = []
    for before, after in zip(sizes, sizes[1:]):
        layers += [nn.Linear(before, after), nn.GELU()]
    return nn.Sequential(*layers[:-1]).to(device)


def text(batch=8, length=128):
    return torch.randint(4096, (batch, length), device=device)


def language_step(model, optimizer, ids):
    optimizer.zero_grad(set_to_none=True)
    logits = model(ids[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
    loss.backward()
    optimizer.step()
    return loss


# ---- averages of the weights ----


class EMA:
    """The running mean of the weights; validation runs with the mean in the model's place."""

    def __init__(self, model, decay=0.99):
        self.decay = decay
        self.shadow = {name: p.detach().clone() for name, p in model.named_parameters()}
        self.backups = []

    @torch.no_grad()
    def update(self, model):
        for name, p in model.named_parameters():
            self.shadow[name].lerp_(p, 1 - self.decay)

    @torch.no_grad()
    def apply(self, model):
        self.backups.append({name: p.detach().clone() for name, p in model.named_parameters()})
        for name, p in model.named_parameters():
            p.copy_(self.shadow[name])

    @torch.no_grad()
    def restore(self, model, pop):
        backup = self.backups.pop() if pop else self.backups[-1]
        for name, p in model.named_parameters():
            p.copy_(backup[name])


def train_with_mean(pop):
    model = Encoder().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    ema = EMA(model)
    for step in range(100):
        language_step(model, optimizer, text())
        ema.update(model)
        if step % 5 == 4:
            ema.apply(model)
            with torch.no_grad():
                model.eval()
                F.cross_entropy(model(text(16)).flatten(0, 1), text(16).flatten()).item()
                model.train()
            ema.restore(model, pop)


def ema_swapped():
    train_with_mean(True)


def ema_backups_stay():
    """restore() reads the newest backup and forgets to remove it."""
    train_with_mean(False)


# ---- reinforcement learning ----


class Buffer:
    """Transitions in tensors of their full size, as many frameworks keep them."""

    def __init__(self, capacity, width):
        self.states = torch.empty(capacity, width, device=device)
        self.next_states = torch.empty(capacity, width, device=device)
        self.rewards = torch.empty(capacity, device=device)
        self.capacity, self.at, self.count = capacity, 0, 0

    def add(self, states, rewards, next_states):
        rows = torch.arange(self.at, self.at + len(states), device=device) % self.capacity
        self.states[rows], self.rewards[rows], self.next_states[rows] = states, rewards, next_states
        self.at = (self.at + len(states)) % self.capacity
        self.count = min(self.count + len(states), self.capacity)

    def sample(self, batch):
        rows = torch.randint(self.count, (batch,), device=device)
        return self.states[rows], self.rewards[rows], self.next_states[rows]


def q_learning():
    """A target network, synchronised now and then, and a ring of transitions."""
    online = mlp(256, 512, 512, 8)
    target = copy.deepcopy(online).requires_grad_(False)
    optimizer = torch.optim.Adam(online.parameters(), 1e-4)
    buffer = Buffer(100_000, 256)
    state = torch.randn(256, 256, device=device)
    for step in range(500):
        with torch.no_grad():
            online(state).argmax(1)
        following = state + 0.1 * torch.randn_like(state)
        buffer.add(state, following.norm(dim=1), following)
        state = following
        states, rewards, next_states = buffer.sample(1024)
        wanted = rewards + 0.99 * target(next_states).max(1).values
        optimizer.zero_grad()
        F.smooth_l1_loss(online(states).max(1).values, wanted).backward()
        nn.utils.clip_grad_norm_(online.parameters(), 1.0)
        optimizer.step()
        if step % 50 == 0:
            target.load_state_dict(online.state_dict())


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = mlp(256, 512, 512, 16)
        self.saved_log_probs, self.rewards = [], []

    def select_action(self, state):
        distribution = torch.distributions.Categorical(logits=self.net(state))
        action = distribution.sample()
        self.saved_log_probs.append(distribution.log_prob(action))
        return action


def reinforce(clear):
    policy = Policy()
    optimizer = torch.optim.Adam(policy.parameters(), 1e-4)
    for _ in range(60):
        state, first = torch.randn(512, 256, device=device), len(policy.saved_log_probs)
        for _ in range(15):
            action = policy.select_action(state)
            state = state.roll(1, 0) + 0.01 * action[:, None]
            policy.rewards.append(random.random())
        loss = -sum(p.mean() * r for p, r in zip(policy.saved_log_probs[first:], policy.rewards[first:]))
        optimizer.zero_grad()
        loss.backward(retain_graph=not clear)
        optimizer.step()
        if clear:
            policy.saved_log_probs.clear()
            policy.rewards.clear()


def log_probabilities_stay():
    """The saved probabilities of every episode stay, with their graphs."""
    reinforce(False)


def log_probabilities_cleared():
    reinforce(True)


# ---- gradients of gradients ----


def second_order_trial(rate, broken):
    model = mlp(512, 1024, 1024, 512)
    for _ in range(6):
        model.zero_grad(set_to_none=True)
        data = torch.randn(256, 512, device=device)
        loss = model(data).square().mean()
        if broken:
            loss.backward(create_graph=True)
            gradients = [p.grad for p in model.parameters()]
        else:
            gradients = torch.autograd.grad(loss, list(model.parameters()), create_graph=True)
        penalty = sum(g.square().sum() for g in gradients)
        changes = torch.autograd.grad(penalty, list(model.parameters()))
        with torch.no_grad():
            for p, change in zip(model.parameters(), changes):
                p.sub_(rate * change)
    return loss.item()


def search_rates(broken):
    best = min((second_order_trial(0.1 / (1 + trial), broken), trial) for trial in range(30))
    print(best)


def second_order_cycles():
    """backward(create_graph=True) ties parameters and gradients together: no model of a trial goes."""
    search_rates(True)


def second_order():
    search_rates(False)


# ---- parameters that are replaced ----


class Splats:
    """Points that are cloned where the gradient is large, as Gaussian splatting does it."""

    def __init__(self, prune):
        self.prune = prune
        self.points = nn.Parameter(torch.randn(60_000, 16, device=device))
        self.optimizer = torch.optim.Adam([{"params": [self.points], "lr": 1e-3}])

    def render(self, camera):
        return (self.points @ camera).tanh().mean(1)

    def densify(self):
        gradient = self.points.grad.norm(dim=1)
        few = 600 if len(self.points) < 72_000 else 0
        chosen = gradient.topk(few).indices
        fresh = nn.Parameter(torch.cat([self.points.detach(), self.points.detach()[chosen]]))
        state = self.optimizer.state.pop(self.points) if self.prune else self.optimizer.state[self.points]
        self.optimizer.state[fresh] = {
            "step": state["step"].clone(),
            **{key: torch.cat([state[key], torch.zeros_like(state[key][chosen])]) for key in ("exp_avg", "exp_avg_sq")}}
        self.optimizer.param_groups[0]["params"][0] = fresh
        self.points = fresh


def splatting(prune):
    splats = Splats(prune)
    for step in range(300):
        loss = splats.render(torch.randn(16, 3, device=device)).square().mean()
        splats.optimizer.zero_grad()
        loss.backward()
        splats.optimizer.step()
        if step % 5 == 4:
            splats.densify()


def states_of_old_points():
    """The optimizer's state of the parameters that were replaced stays, under the old keys."""
    splatting(False)


def splats_until_enough():
    splatting(True)


def unfreezing():
    """From the top down a block more is trained, up to the middle; its state comes with its first step."""
    model = Encoder(layers=6).to(device)
    model.embed.requires_grad_(False)
    model.blocks.requires_grad_(False)
    optimizer = torch.optim.AdamW(model.head.parameters(), 1e-4)
    waiting = list(model.blocks)
    for step in range(120):
        if step % 8 == 7 and waiting:
            block = waiting.pop()
            block.requires_grad_(True)
            optimizer.add_param_group({"params": list(block.parameters())})
        language_step(model, optimizer, text())


# ---- sizes that change ----


def progressive_resizing():
    model = ConvNet().to(device)
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    for side, steps in ((64, 30), (96, 30), (128, 30), (160, 100)):
        for _ in range(steps):
            optimizer.zero_grad()
            F.cross_entropy(model(torch.randn(32, 3, side, side, device=device)),
                            torch.randint(10, (32,), device=device)).backward()
            optimizer.step()


def curriculum():
    """Texts become longer up to two fifths of the run."""
    model = Encoder().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    for step in range(200):
        language_step(model, optimizer, text(8, min(64 + step // 10 * 32, 320)))


def sorted_by_length():
    """Each epoch goes from the shortest texts to the longest."""
    model = Encoder().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    lengths = sorted(random.choices(range(32, 321, 32), k=30))
    for _ in range(6):
        for length in lengths:
            language_step(model, optimizer, text(8, length))


def mixture_of_experts():
    """As many tokens as the gate sends to an expert: no two steps ask for the same sizes."""
    gate, experts = nn.Linear(512, 8).to(device), nn.ModuleList(mlp(512, 2048, 512) for _ in range(8))
    optimizer = torch.optim.Adam([*gate.parameters(), *experts.parameters()], 1e-4)
    for _ in range(120):
        tokens = torch.randn(4096, 512, device=device)
        chosen, result = gate(tokens).argmax(1), torch.zeros_like(tokens)
        for index, expert in enumerate(experts):
            rows = (chosen == index).nonzero()[:, 0]
            result = result.index_copy(0, rows, expert(tokens[rows]))
        optimizer.zero_grad()
        result.square().mean().backward()
        optimizer.step()


# ---- hooks and features ----


def probe(model, features, remove):
    """Looks at what the second layer makes of a batch."""
    handle = model.features[4].register_forward_hook(lambda module, inputs, output: features.append(output.detach()))
    with torch.no_grad():
        model(torch.randn(32, 3, 64, 64, device=device))
    statistics = features[-1].std().item()
    if remove:
        handle.remove()
        features.clear()
    return statistics


def train_with_probes(remove):
    model, features = ConvNet().to(device), []
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for step in range(120):
        optimizer.zero_grad()
        model(torch.randn(32, 3, 64, 64, device=device)).square().mean().backward()
        optimizer.step()
        if step % 30 == 29:
            probe(model, features, remove)


def hooks_pile_up():
    """A hook more after each thirty steps, and every one of them stores each batch."""
    train_with_probes(False)


def hooks_removed():
    train_with_probes(True)


# ---- data ----


class Crops(torch.utils.data.Dataset):
    """Crops that are cached on the device."""

    def __init__(self, count, random_crops):
        self.images = torch.randn(count, 3, 96, 96)
        self.random_crops, self.cache = random_crops, {}

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        corner = random.randrange(32) if self.random_crops else 0
        if (index, corner) not in self.cache:
            self.cache[index, corner] = self.images[index, :, corner:corner + 64, corner:corner + 64].to(device)
        return self.cache[index, corner]


def train_on(data, epochs):
    model = ConvNet().to(device)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for _ in range(epochs):
        for images in torch.utils.data.DataLoader(data, 32, shuffle=True):
            optimizer.zero_grad()
            model(images).square().mean().backward()
            optimizer.step()


def crops_cached():
    """The first of ten epochs fills the cache."""
    train_on(Crops(512, False), 10)


def crops_never_hit():
    """The key has the random corner in it: nearly every lookup misses."""
    train_on(Crops(512, True), 10)


def pinned_loader():
    """Two worker processes, pinned memory, copies that do not wait."""
    data = torch.utils.data.TensorDataset(torch.randn(2048, 3, 64, 64), torch.randint(10, (2048,)))
    model = ConvNet().to(device)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for _ in range(3):
        for images, labels in torch.utils.data.DataLoader(data, 64, shuffle=True, num_workers=2, pin_memory=True):
            images, labels = images.to(device, non_blocking=True), labels.to(device, non_blocking=True)
            optimizer.zero_grad()
            F.cross_entropy(model(images), labels).backward()
            optimizer.step()


class Prefetcher:
    """The next batch is copied on a stream of its own while this one is worked on."""

    def __init__(self, batches):
        self.batches, self.stream = iter(batches), torch.cuda.Stream()
        self.load()

    def load(self):
        self.following = next(self.batches, None)
        if self.following is not None:
            with torch.cuda.stream(self.stream):
                self.following = self.following.pin_memory().to(device, non_blocking=True).float() / 255

    def __iter__(self):
        while self.following is not None:
            torch.cuda.current_stream().wait_stream(self.stream)
            batch = self.following
            batch.record_stream(torch.cuda.current_stream())
            self.load()
            yield batch


def prefetched():
    model = ConvNet().to(device)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for batch in Prefetcher(torch.randint(255, (64, 3, 96, 96), dtype=torch.uint8) for _ in range(120)):
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()


# ---- many trainings in one process ----


class Fold:
    """A fold of a cross validation; its weights are to be saved even if the job is preempted."""

    def __init__(self, index, register):
        self.index = index
        self.model = Encoder(layers=2).to(device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), 1e-4)
        if register:
            atexit.register(self.flush)

    def flush(self):
        torch.save(self.model.state_dict(), io.BytesIO())

    def fit(self):
        for _ in range(15):
            loss = language_step(self.model, self.optimizer, text())
        return loss.item()


def cross_validate(register):
    print([Fold(index, register).fit() for index in range(10)])


def folds_registered():
    """atexit holds each fold's method, and that holds its model and optimizer."""
    cross_validate(True)


def folds():
    cross_validate(False)


def checkpoints_in_the_loop():
    """Saved after every twentieth step; after a bad step the last one is loaded again."""
    model = Encoder().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    saved = None
    for step in range(120):
        language_step(model, optimizer, text())
        if step % 20 == 19:
            saved = io.BytesIO()
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, saved)
        if step % 30 == 25 and saved:
            saved.seek(0)
            loaded = torch.load(saved, map_location=device)
            model.load_state_dict(loaded["model"])
            optimizer.load_state_dict(loaded["optimizer"])
            del loaded


# ---- the optimizers' own ways ----


def accumulated():
    """The losses of four parts are summed, and the sum is let go with the step."""
    model = Encoder().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    for _ in range(40):
        total = 0
        for _ in range(4):
            ids = text(4)
            total = total + F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten()) / 4
        optimizer.zero_grad()
        total.backward()
        optimizer.step()


def autocast_around_everything():
    """The half-precision copies of the weights are cached until autocast ends, which is at the end."""
    model = Encoder().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    with torch.autocast("cuda", torch.bfloat16):
        for _ in range(80):
            language_step(model, optimizer, text())


class Bucket:
    """The gradients of a data-parallel training, copied to one buffer for the exchange and back."""

    def __init__(self, parameters):
        self.parameters = list(parameters)
        self.flat = torch.zeros(sum(p.numel() for p in self.parameters), device=device)

    def exchange(self):
        at = 0
        for p in self.parameters:
            self.flat[at:at + p.numel()].copy_(p.grad.flatten())
            at += p.numel()
        self.flat.div_(1)
        for p, part in zip(self.parameters, self.flat.split([p.numel() for p in self.parameters])):
            p.grad.copy_(part.view_as(p))


def data_parallel():
    model = Encoder().to(device)
    optimizer, bucket = torch.optim.AdamW(model.parameters(), 1e-4), Bucket(model.parameters())
    for _ in range(80):
        optimizer.zero_grad()
        ids = text()
        F.cross_entropy(model(ids).flatten(0, 1), ids.flatten()).backward()
        bucket.exchange()
        optimizer.step()


class Sharded(nn.Module):
    """A layer whose full weights exist only while it runs: their storage is resized to nothing in between."""

    def __init__(self, width):
        super().__init__()
        self.shard = nn.Parameter(torch.randn(width * width // 8, device=device) / width ** 0.5)
        self.full = torch.empty(width, width, device=device)
        self.bytes = self.full.untyped_storage().nbytes()
        self.full.untyped_storage().resize_(0)

    def forward(self, values):
        self.full.untyped_storage().resize_(self.bytes)
        with torch.no_grad():
            self.full.copy_(self.shard.repeat(8).view_as(self.full))
        result = F.gelu(values @ self.full.clone())
        self.full.untyped_storage().resize_(0)
        return result


def sharded():
    model = nn.Sequential(*[Sharded(2048) for _ in range(6)])
    with torch.no_grad():
        for _ in range(150):
            model(torch.randn(256, 2048, device=device))


def graphed_training():
    """The whole step as one CUDA graph, replayed with new data."""
    model = mlp(512, 2048, 2048, 512)
    optimizer = torch.optim.Adam(model.parameters(), 1e-4, capturable=True)
    data = torch.randn(512, 512, device=device)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = model(data).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    optimizer.zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):
        loss = step()
    for _ in range(200):
        data.copy_(torch.randn(512, 512))
        graph.replay()
    print(loss.item())


# ---- errors ----


class Records(logging.Handler):
    """Records for a dashboard, with the errors in them."""

    def __init__(self, limit):
        super().__init__()
        self.limit, self.records = limit, []

    def emit(self, record):
        self.records.append(record)
        if self.limit:
            del self.records[:-self.limit]


def checked_step(model, images):
    scores = model(images)
    if scores.isnan().any() or images.mean() > -1:
        raise FloatingPointError("the loss is not finite")
    return scores


def train_with_log(limit):
    log = logging.getLogger("training")
    log.propagate = False
    log.addHandler(Records(limit))
    model = ConvNet().to(device)
    for step in range(60):
        try:
            checked_step(model, torch.randn(16, 3, 64, 64, device=device))
        except FloatingPointError:
            log.exception("step %d was skipped", step)


def errors_logged():
    """The handler keeps the records, those the tracebacks, those the frames with their activations."""
    train_with_log(0)


def last_errors_logged():
    train_with_log(3)


handles = []


class Handle:
    """What a caller has of a region: the memory is given back with the handle."""

    def __init__(self, name):
        self.name = name


def reserve_region(name):
    handle, region = Handle(name), torch.empty(2 << 20, device=device)
    weakref.finalize(handle, region.untyped_storage().resize_, 0)
    return handle


def regions(keep):
    model = mlp(1024, 1024)
    for step in range(60):
        handle = reserve_region(f"region {step}")
        if keep:
            handles.append(handle)
        with torch.no_grad():
            model(torch.randn(512, 1024, device=device))


def finalizers_wait():
    """The handles are small, and the finalizers hold the regions."""
    regions(True)


def finalizers_run():
    regions(False)


# ---- out of memory ----


def oom_mean_of_weights():
    """A second copy of the weights after the first epoch does not fit."""
    model = mlp(*[7168] * 8)
    optimizer = torch.optim.SGD(model.parameters(), 1e-4)
    for epoch in range(3):
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randn(64, 7168, device=device)).mean().backward()
            optimizer.step()
        if epoch == 0:
            mean = EMA(model)
        mean.update(model)


def whole_validation(model):
    return F.cross_entropy(model(text(512, 256)).flatten(0, 1), text(512, 256).flatten()).item()


def oom_validation_at_once():
    """All of the validation's texts in one batch, after twenty steps that fit."""
    model = Encoder().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    for _ in range(20):
        language_step(model, optimizer, text())
    whole_validation(model)


def token_loss(logits, labels):
    return F.cross_entropy(logits.float().flatten(0, 1), labels.flatten())


def oom_vocabulary():
    """Scores over a vocabulary of 128,000, in single precision, for one long text."""
    hidden = torch.randn(1, 6144, 256, device=device, dtype=torch.bfloat16, requires_grad=True)
    head = nn.Linear(256, 128_000, device=device, dtype=torch.bfloat16)
    token_loss(head(hidden), torch.randint(128_000, (1, 6144), device=device)).backward()


def oom_halved():
    """A share of the device; the batch is halved until a step fits, and the training goes on."""
    torch.cuda.set_per_process_memory_fraction(0.01)
    model, batch = ConvNet(64).to(device), 1024
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    done = 0
    while done < 20:
        images = None
        try:
            optimizer.zero_grad()
            images = torch.randn(batch, 3, 64, 64, device=device)
            model(images).square().mean().backward()
            optimizer.step()
            done += 1
        except torch.cuda.OutOfMemoryError:
            batch //= 2
            print("batch", batch)


def oom_small_segments():
    """Of each two megabytes of small tensors one of 32 stays: the rest is idle and fits no large request."""
    everything = [torch.empty(16 << 10, device=device) for _ in range(40_000)]
    stay = everything[::32]
    del everything
    torch.empty(2 << 30, dtype=torch.uint8, device=device)
    print(len(stay))


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    torch.cuda.synchronize()
    print(f"live {torch.cuda.memory_allocated()} reserved {torch.cuda.memory_reserved()}", flush=True)
