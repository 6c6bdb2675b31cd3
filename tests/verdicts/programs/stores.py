"""Python programs without a framework: stores of memory in which something stays, and in which nothing does.

Each function is a program: caches, sessions, queues, generators, tasks, threads and pools of them, on buffers of the
driver's. The growing place has a function of its own, named in cases.py.
"""
import asyncio
import collections
import concurrent.futures
import contextlib
import functools
import itertools
import threading
import weakref

import ending
import gpu
from gpu import MIB, Buffer

STEPS = 240


def clean_step(size=16 * MIB):
    scratch = Buffer(size)
    gpu.work(40)
    del scratch


def numbers(below):
    """Reproducible: Park and Miller's generator."""
    state = 20250101
    while True:
        state = state * 48271 % 2147483647
        yield state % below


# ---- growth ----


def append_row(row, table=[]):  # noqa: B006, the mistake is the point
    table.append((row, Buffer(MIB)))


def default_argument():
    """A default argument is made once, and each call appends to it."""
    for i in range(STEPS):
        clean_step()
        append_row(i)


class Document:
    def __init__(self, text):
        self.text = text

    @functools.cache  # noqa: B019, the mistake is the point
    def embedding(self):
        return Buffer(MIB)


def cached_method():
    """functools.cache on a method keeps each object, and what it returned."""
    for i in range(STEPS):
        clean_step()
        Document(i).embedding()


def read_ahead(source):
    for _ in source:
        yield Buffer(MIB)


def lagging_tee():
    """One of two iterators of a tee is never read: the items between them wait."""
    first, world["second"] = itertools.tee(read_ahead(range(STEPS)))
    for _ in first:
        clean_step()


world = {}


def slow_consumer():
    """A queue without a limit: one item in four is served in time."""

    async def run():
        queue = world["queue"] = asyncio.Queue()
        for i in range(STEPS):
            await queue.put(accept_request())
            clean_step()
            if i % 4 == 0:
                queue.get_nowait()

    asyncio.run(run())


def accept_request():
    return Buffer(MIB)


def submit(pool):
    gpu.attach()
    clean_step(8 * MIB)
    return Buffer(MIB)


def kept_futures():
    """The futures of a thread pool are kept for their exceptions, and each holds its result."""
    futures = world["futures"] = []
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for _ in range(STEPS):
            futures.append(pool.submit(submit, pool))
            futures[-1].exception()


def open_stack(stack):
    buffer = Buffer(MIB)
    stack.callback(lambda: buffer)


def exit_stack():
    """An ExitStack around the whole run collects a callback, and its buffer, per step."""
    with contextlib.ExitStack() as stack:
        for _ in range(STEPS):
            clean_step()
            open_stack(stack)


class Node:
    def __init__(self, parent):
        self.parent, self.data = parent, Buffer(MIB)


def parent_chain():
    """Each state refers to the one before it, as a search does that never forgets."""
    state = None
    for _ in range(STEPS):
        clean_step()
        state = Node(state)
    world["state"] = state


def track(live, key):
    live[key] = Buffer(MIB)


def finalizer_holds_it():
    """A weak dictionary, but the finalizer of each owner holds its buffer's value strongly."""
    live = world["live"] = {}

    class Owner:
        pass

    owners = world["owners"] = []
    for i in range(STEPS):
        owner = Owner()
        track(live, i)
        weakref.finalize(owner, live.pop, i, None)
        owners.append(owner)
        clean_step()


def worker(results, keeps):
    gpu.attach()
    for _ in range(STEPS):
        clean_step(4 * MIB)
        if keeps:
            keep_result(results)


def keep_result(results):
    results.append(Buffer(512 << 10))


def one_of_four_threads():
    """Of four equal threads one keeps its results."""
    threads = [threading.Thread(target=worker, args=(world.setdefault("results", []), i == 1)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# ---- nothing wrong ----


def ordered_dictionary():
    """A cache of 16 entries: the one used longest ago goes."""
    cache = collections.OrderedDict()
    for key in itertools.islice(numbers(60), 2 * STEPS):
        clean_step()
        cache[key] = cache.pop(key, None) or Buffer(MIB)
        if len(cache) > 16:
            cache.popitem(last=False)


def time_to_live():
    """Entries live for 20 steps."""
    cache = {}
    for i in range(2 * STEPS):
        clean_step()
        cache[i] = Buffer(MIB)
        cache.pop(i - 20, None)


def closed_generators():
    """A generator per request, closed when the request is over."""

    def rows():
        buffer = Buffer(2 * MIB)
        while True:
            yield buffer.pointer

    for _ in range(STEPS):
        with contextlib.closing(rows()) as stream:
            next(stream)
            clean_step()


def thread_pool():
    """Four threads of a pool map over batches; results are consumed."""

    def evaluate(_):
        gpu.attach()
        clean_step(4 * MIB)
        return Buffer(MIB)

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for _ in range(STEPS // 8):
            for result in pool.map(evaluate, range(8)):
                del result


def gathered_tasks():
    """Eight tasks at a time are gathered and dropped."""

    async def answer():
        buffer = Buffer(MIB)
        await asyncio.sleep(0)
        clean_step(4 * MIB)
        return buffer

    async def run():
        for _ in range(STEPS // 8):
            await asyncio.gather(*(answer() for _ in range(8)))

    asyncio.run(run())


def cached_properties():
    """Each of 24 objects computes a property when it is first asked."""

    class Shard:
        @functools.cached_property
        def weights(self):
            return Buffer(4 * MIB)

    shards = world["shards"] = [Shard() for _ in range(24)]
    for i in itertools.islice(numbers(24), 2 * STEPS):
        shards[i].weights  # noqa: B018, asking makes it
        clean_step()


def preload_then_epochs():
    """300 batches are preloaded, with conversions, and then read over and over."""
    batches = world["batches"] = []
    for _ in range(300):
        raw = Buffer(2 * MIB)
        batches.append(Buffer(MIB))
        del raw
    for _ in range(4 * STEPS):
        clean_step()


def backlog_that_drains():
    """Requests come faster than they are served for a while, three times; each time the backlog drains."""
    backlog = collections.deque()
    for i in range(3 * STEPS):
        clean_step(4 * MIB)
        if i % STEPS < STEPS // 2:
            backlog.append(Buffer(MIB))
        elif backlog:
            backlog.popleft()


if __name__ == "__main__":
    gpu.start()
    ending.main(globals())
