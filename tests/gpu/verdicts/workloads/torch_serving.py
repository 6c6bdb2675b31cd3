"""Services with PyTorch, as people write them: torch_serving.py NAME. ../workloads.py has their labels."""
import collections
import copy
import dataclasses
import functools
import queue
import random
import sys
import threading

import torch

F, nn = torch.nn.functional, torch.nn
torch.manual_seed(0)
random.seed(0)
device = torch.device("cuda")


class Decoder(nn.Module):
    """A decoder whose caches of keys and values the caller owns."""

    def __init__(self, width=512, layers=4, heads=8, vocabulary=4096):
        super().__init__()
        self.heads = heads
        self.embed = nn.Embedding(vocabulary, width)
        self.query_key_value = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(layers))
        self.feed = nn.ModuleList(nn.Sequential(nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width))
                                  for _ in range(layers))
        self.head = nn.Linear(width, vocabulary)

    def forward(self, ids, cache):
        hidden = self.embed(ids)
        for index, (projection, feed) in enumerate(zip(self.query_key_value, self.feed)):
            query, key, value = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
                                 for part in projection(hidden).chunk(3, -1))
            key, value = cache.extend(index, key, value)
            hidden = hidden + F.scaled_dot_product_attention(query, key, value).transpose(1, 2).flatten(2)
            hidden = hidden + feed(hidden)
        return self.head(hidden[:, -1])


class Cache:
    def __init__(self):
        self.parts = {}

    def extend(self, layer, key, value):
        if layer in self.parts:
            key, value = (torch.cat(both, 2) for both in zip(self.parts[layer], (key, value)))
        self.parts[layer] = key, value
        return key, value

    def bytes(self):
        return sum(part.nbytes for pair in self.parts.values() for part in pair)

    def crop(self, length):
        for layer, pair in self.parts.items():
            self.parts[layer] = tuple(part[:, :, :length].contiguous() for part in pair)


def prompt(length, batch=1):
    return torch.randint(4096, (batch, length), device=device)


def complete(model, ids, cache, count):
    token = model(ids, cache).argmax(-1, keepdim=True)
    for _ in range(count - 1):
        token = model(token, cache).argmax(-1, keepdim=True)
    return token


# ---- caches of keys and values ----


class Blocks:
    """Pages of keys and values of one tensor, handed out by number."""

    def __init__(self, count, tokens=16, width=2048):
        self.shape = tokens, width
        self.pages = [torch.empty(count, *self.shape, device=device, dtype=torch.float16)]
        self.free = list(range(count))
        self.count = count

    def take(self, may_grow):
        if not self.free and may_grow:
            self.grow()
        return self.free.pop()

    def grow(self):
        self.pages.append(torch.empty(128, *self.shape, device=device, dtype=torch.float16))
        self.free += range(self.count, self.count + 128)
        self.count += 128


def serve_pages(cancel):
    """Continuous batching: each request takes a page for every 16 tokens and gives all back at its end."""
    blocks, running = Blocks(2048), {}
    model = nn.Sequential(nn.Linear(2048, 2048), nn.GELU(), nn.Linear(2048, 2048)).half().to(device)
    for step in range(900):
        if len(running) < 24:
            running[step] = [random.randint(20, 80), []]
        for request, (left, pages) in list(running.items()):
            pages.append(blocks.take(cancel))
            running[request][0] -= 1
            if left == 1:
                del running[request]
                if not cancel or request % 4:
                    blocks.free += pages
        with torch.inference_mode():
            model(torch.randn(len(running), 2048, device=device, dtype=torch.float16))


def pages_of_cancelled_requests():
    """A request in four is cancelled by its client, and its pages never come back: more are made."""
    serve_pages(True)


def pages_returned():
    serve_pages(False)


class Prefixes:
    """Caches of prompts by their first tokens, up to a number of bytes; the least recently used one goes."""

    def __init__(self, budget):
        self.budget, self.held, self.entries = budget, 0, collections.OrderedDict()

    def lookup(self, model, key, length):
        if key not in self.entries:
            cache = Cache()
            model(prompt(length), cache)
            self.entries[key] = cache
            self.held += cache.bytes()
        self.entries.move_to_end(key)
        while self.held > self.budget:
            self.held -= self.entries.popitem(last=False)[1].bytes()
        return copy.copy(self.entries[key])


@torch.inference_mode()
def serve_prefixes(budget, requests=260):
    model, prefixes = Decoder().to(device), Prefixes(budget)
    for request in range(requests):
        cache = prefixes.lookup(model, random.randrange(200), random.choice((128, 256, 384)))
        cache.parts = dict(cache.parts)
        complete(model, prompt(8), cache, 4)


def prefixes_by_bytes():
    serve_prefixes(64 << 20)


@torch.inference_mode()
def speculative():
    """A small model proposes, the large one checks; both caches are cropped to what was accepted."""
    large, small = Decoder(1024, 6).to(device), Decoder(256, 2).to(device)
    for _ in range(12):
        caches = Cache(), Cache()
        large(prompt(64), caches[0])
        small(prompt(64), caches[1])
        length = 64
        for _ in range(25):
            proposed = prompt(4)
            small(proposed, caches[1])
            large(proposed, caches[0])
            length += random.randint(1, 4)
            for cache in caches:
                cache.crop(length)


@torch.inference_mode()
def transcribe(model, keep_last):
    """A stream of sound, chunk by chunk; the context on the left is cached."""
    cache = Cache()
    for _ in range(220):
        model(prompt(24), cache)
        if keep_last:
            cache.parts = {layer: tuple(part[:, :, -keep_last:] for part in pair) for layer, pair in cache.parts.items()}


def context_untrimmed():
    """The context of one endless stream is never trimmed."""
    transcribe(Decoder(1024, 4).to(device), 0)


def context_trimmed():
    transcribe(Decoder(1024, 4).to(device), 192)


# ---- adapters and versions ----


class Adapters:
    """Low-rank adapters, merged into the weights while they are in use."""

    def __init__(self, model, most):
        self.model, self.most = model, most
        self.loaded, self.undo = collections.OrderedDict(), []

    def load(self, name):
        if name not in self.loaded:
            self.loaded[name] = [(torch.randn(layer.out_features, 32, device=device) / 1e3,
                                  torch.randn(32, layer.in_features, device=device) / 1e3)
                                 for layer in self.model.query_key_value]
        self.loaded.move_to_end(name)
        while len(self.loaded) > self.most:
            self.loaded.popitem(last=False)

    def merge(self, name):
        saved = []
        for layer, (up, down) in zip(self.model.query_key_value, self.loaded[name]):
            saved.append(layer.weight.detach().clone())
            layer.weight.add_(up @ down)
        self.undo.append(saved)

    def unmerge(self, forget):
        saved = self.undo[-1]
        for layer, weight in zip(self.model.query_key_value, saved):
            layer.weight.copy_(weight)
        if forget:
            self.undo.pop()


@torch.inference_mode()
def serve_adapters(forget):
    model = Decoder().to(device)
    adapters = Adapters(model, 4)
    for _ in range(60):
        name = f"customer-{random.randrange(12)}"
        adapters.load(name)
        adapters.merge(name)
        complete(model, prompt(48, 4), Cache(), 6)
        adapters.unmerge(forget)


def weights_before_merging_stay():
    """What the weights were before each merging stays in a list."""
    serve_adapters(False)


def adapters_in_turn():
    serve_adapters(True)


class Service:
    """Holds the model in use; a new version is loaded beside the old one."""

    def __init__(self, workers_stop):
        self.workers_stop, self.requests, self.model = workers_stop, None, None
        self.deploy(0)

    def deploy(self, version):
        model = Decoder(layers=3).to(device).eval()
        model(prompt(16), Cache())
        if self.requests and self.workers_stop:
            self.requests.put(None)
        self.requests, self.model = queue.Queue(), model
        threading.Thread(target=self.work, args=(model, self.requests), daemon=True).start()

    @torch.inference_mode()
    def work(self, model, requests):
        while (request := requests.get()) is not None:
            ids, done = request
            done.put(complete(model, ids, Cache(), 4).cpu())

    def ask(self, ids):
        done = queue.Queue()
        self.requests.put((ids, done))
        return done.get(timeout=60)


@torch.inference_mode()
def deploy_often(workers_stop):
    service = Service(workers_stop)
    for version in range(1, 16):
        for _ in range(6):
            service.ask(prompt(32, 2))
        service.deploy(version)
    service.ask(prompt(32, 2))


def versions_held_by_workers():
    """The thread of each version waits for requests for ever, and holds its model."""
    deploy_often(False)


def versions_replaced():
    deploy_often(True)


# ---- queues, streams, sessions ----


def serve_with_threads():
    """Four workers, a stream for each; the results go to the host."""
    model, requests, answers = Decoder().to(device).eval(), queue.Queue(), []

    @torch.inference_mode()
    def work():
        with torch.cuda.stream(torch.cuda.Stream()):
            while (ids := requests.get()) is not None:
                answers.append(complete(model, ids.to(device), Cache(), 4).cpu())

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for _ in range(120):
        requests.put(torch.randint(4096, (2, random.randint(16, 64))))
    for _ in workers:
        requests.put(None)
    for worker in workers:
        worker.join()
    print(len(answers))


def encode(model, batch):
    return model(batch)


def retries(limit):
    """A batch that fails is put back as a partial function, to be tried again later."""
    model = nn.Sequential(nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1024)).to(device)
    waiting = collections.deque(maxlen=limit)
    with torch.no_grad():
        for step in range(150):
            batch = torch.randn(1024, 1024, device=device)
            if encode(model, batch).mean().isfinite() and step % 3 == 0:  # the downstream service is away
                waiting.append(functools.partial(encode, model, batch))


def retries_never_run():
    retries(None)


def retries_limited():
    retries(4)


@dataclasses.dataclass
class Answer:
    request: int
    scores: torch.Tensor
    top: list = dataclasses.field(default_factory=list)


@torch.inference_mode()
def rank(model, request):
    scores = model(torch.randn(4096, 512, device=device))
    return Answer(request, scores, scores.max(1).values.topk(5).indices.tolist())


def audit(to_host):
    """Each answer is appended to the audit's list."""
    model, trail = nn.Linear(512, 512).to(device), []
    for request in range(80):
        answer = rank(model, request)
        trail.append(dataclasses.asdict(answer) | {"scores": answer.scores.mean().item()} if to_host else answer)
    print(len(trail))


def answers_audited():
    audit(False)


def figures_audited():
    audit(True)


open_streams = []


@torch.inference_mode()
def stream_tokens(model, ids):
    cache = Cache()
    token = model(ids, cache).argmax(-1, keepdim=True)
    while True:
        yield token.item()
        token = model(token, cache).argmax(-1, keepdim=True)


def stream_to_clients(close):
    """Clients read a few tokens; some go away without a word."""
    model = Decoder(1024, 4).to(device).eval()
    for client in range(60):
        stream = stream_tokens(model, prompt(96))
        for _ in range(random.randint(2, 6)):
            next(stream)
        if close or client % 2:
            stream.close()
        else:
            open_streams.append(stream)


def streams_left_open():
    stream_to_clients(False)


def streams_closed():
    stream_to_clients(True)


@torch.inference_mode()
def sessions_expire():
    """Conversations of a few turns; who is silent for thirty requests is dropped."""
    model, sessions = Decoder().to(device).eval(), {}
    for now in range(300):
        user = random.choice(list(sessions)) if len(sessions) > 12 and random.random() < 0.8 else f"user-{now}"
        cache, _ = sessions.get(user, (Cache(), now))
        complete(model, prompt(24), cache, 3)
        sessions[user] = cache, now
        for name in [name for name, (cache, last) in sessions.items() if now - last > 30 or cache.bytes() > 8 << 20]:
            del sessions[name]


class Index:
    """Embeddings in one matrix of twice the size whenever it is full."""

    def __init__(self):
        self.rows, self.count = torch.empty(1024, 512, device=device), 0

    def add(self, vectors):
        while self.count + len(vectors) > len(self.rows):
            self.enlarge()
        self.rows[self.count:self.count + len(vectors)] = vectors
        self.count += len(vectors)

    def enlarge(self):
        larger = torch.empty(2 * len(self.rows), 512, device=device)
        larger[:self.count] = self.rows[:self.count]
        self.rows = larger


@torch.inference_mode()
def questions_remembered():
    """A semantic cache: each question's vectors are added, for ever."""
    model, index = nn.Linear(512, 512).to(device), Index()
    for _ in range(600):
        vectors = model(torch.randn(256, 512, device=device))
        (index.rows[:index.count] @ vectors[0]).argsort()[:8]
        index.add(vectors)


@torch.inference_mode()
def sample(model, latents, history):
    for step in range(25):
        latents = latents - 0.1 * model(latents)
        history.append(latents)
    return latents


def diffusion(keep):
    """Pictures from noise; the latents of a picture's steps are wanted for an animation."""
    model = nn.Sequential(nn.Conv2d(4, 128, 3, padding=1), nn.SiLU(), nn.Conv2d(128, 4, 3, padding=1)).to(device)
    history = []
    for _ in range(24):
        if not keep:
            history = []
        sample(model, torch.randn(2, 4, 128, 128, device=device), history).cpu()


def latents_of_all_pictures():
    diffusion(True)


def latents_of_one_picture():
    diffusion(False)


def shapes_as_graphs():
    """The compiler's backend for CUDA graphs, for three batch sizes."""
    model = nn.Sequential(nn.Linear(512, 1024), nn.GELU(), nn.Linear(1024, 512)).to(device)
    fast = torch.compile(model, backend="cudagraphs", dynamic=False)
    with torch.no_grad():
        for step in range(150):
            torch.compiler.cudagraph_mark_step_begin()
            fast(torch.randn((16, 32, 64)[step % 3], 512, device=device))


def consume(batches, results):
    for batch in iter(batches.get, None):
        results.put(float(batch.mean()))
        del batch


def worker_process():
    """Tensors go to another process, which reads and drops them."""
    context = torch.multiprocessing.get_context("spawn")
    batches, results = context.Queue(4), context.Queue()
    process = context.Process(target=consume, args=(batches, results))
    process.start()
    model = nn.Linear(1024, 1024).to(device)
    for _ in range(60):
        with torch.no_grad():
            batches.put(model(torch.randn(1024, 1024, device=device)))
        results.get(timeout=120)
    batches.put(None)
    process.join()


# ---- out of memory ----


def scores_of(query, key):
    return (query @ key.transpose(-1, -2)).softmax(-1)


def oom_long_text():
    """After a hundred ordinary texts comes one that is a book."""
    projection = nn.Linear(256, 512).to(device)
    with torch.no_grad():
        for length in [random.randint(100, 400) for _ in range(100)] + [24_000]:
            query, key = projection(torch.randn(8, length, 256, device=device)).chunk(2, -1)
            scores_of(query, key).sum().item()


@torch.inference_mode()
def oom_sessions_survived():
    """Sessions that never end fill the device. The service answers with an error and goes on."""
    model, sessions, refused = Decoder(1024, 4).to(device).eval(), {}, 0
    for request in range(100_000):
        try:
            sessions[request] = Cache()
            complete(model, prompt(1024, 2), sessions[request], 2)
        except torch.cuda.OutOfMemoryError:
            refused += 1
            if refused == 8:
                break
    print(len(sessions))


def oom_beside_a_graph():
    """The private pool of a captured pass holds most of the device, idle between replays."""
    model = nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(6)]).to(device)
    data, graph = torch.randn(130_000, 1024, device=device), torch.cuda.CUDAGraph()
    with torch.no_grad():
        torch.ones(1, 1024, device=device) @ model[0].weight
        with torch.cuda.graph(graph):
            result = model(data).mean()
        graph.replay()
        print(result.item())
        torch.randn(600_000, 1024, device=device)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    torch.cuda.synchronize()
    print(f"live {torch.cuda.memory_allocated()} reserved {torch.cuda.memory_reserved()}", flush=True)
