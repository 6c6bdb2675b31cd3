"""Python programs without a framework: where references stay, and where they do not.

Each function is a program. What it keeps is kept where Python programs keep things; the interpreter frees it while it
ends. The growing place has a function of its own, named in cases.py.
"""
import asyncio
import collections
import functools
import gc
import logging
import threading
import weakref

import ending
import gpu
from gpu import MIB, Buffer

STEPS = 240


def clean_step(size=24 * MIB):
    scratch = Buffer(size)
    gpu.work()
    del scratch


# ---- growth ----

results = []


def append_result():
    results.append(Buffer(MIB))


def global_list():
    """A module's list of results."""
    for _ in range(STEPS):
        clean_step()
        append_result()


@functools.lru_cache(maxsize=None)
def text_features(key):
    gpu.work(20)
    return Buffer(MIB)


def unbounded_lru_cache():
    """functools.lru_cache(maxsize=None) over keys that do not come back."""
    for i in range(STEPS):
        clean_step()
        text_features(i)


sessions = {}


def open_session(user):
    sessions[user] = Buffer(MIB)


def session_table():
    """Sessions are opened and never closed."""
    for i in range(STEPS):
        clean_step()
        open_session(f"user{i}")


callbacks = []


def register_callback():
    data = Buffer(MIB)
    callbacks.append(lambda: data)


def closures():
    """Each callback that is registered holds a buffer by its closure."""
    for _ in range(STEPS):
        clean_step()
        register_callback()


errors = []


def parse_record(i):
    record = Buffer(2 * MIB)
    gpu.work()
    if i % 3 == 0:
        raise ValueError(f"record {i}")
    del record


def tracebacks():
    """Errors are collected for a report; their tracebacks keep the frames, and those their locals."""
    for i in range(STEPS):
        try:
            parse_record(i)
        except ValueError as error:
            errors.append(error)
        clean_step()


streams = []


def stream_rows():
    rows = Buffer(MIB)
    while True:
        yield rows


def generators():
    """Generators that are started, suspended and kept."""
    for _ in range(STEPS):
        rows = stream_rows()
        next(rows)
        streams.append(rows)
        clean_step()


class Metric:
    """Every instance registers itself with its class."""

    instances = []

    def __init__(self):
        self.values = Buffer(MIB)
        Metric.instances.append(self)


def class_registry():
    for _ in range(STEPS):
        Metric()
        clean_step()


class Remember(logging.Handler):
    """A handler that keeps its records, for a page that shows the latest and drops none."""

    records = []

    def emit(self, record):
        self.records.append(record)


def log_batch(log):
    log.warning("batch %s", Buffer(MIB))


def logging_handler():
    log = logging.getLogger("train")
    log.addHandler(Remember())
    log.propagate = False
    for _ in range(STEPS):
        log_batch(log)
        clean_step()


contexts = {}


def worker_context():
    gpu.attach()
    contexts[threading.current_thread().name] = Buffer(2 * MIB)
    clean_step()


def per_thread():
    """A context for each of the threads that come and go."""
    for _ in range(STEPS):
        thread = threading.Thread(target=worker_context)
        thread.start()
        thread.join()


waiting = []


async def answer_request(request):
    reply = Buffer(MIB)
    await request
    return reply


async def serve():
    loop = asyncio.get_running_loop()
    for _ in range(STEPS):
        waiting.append(asyncio.ensure_future(answer_request(loop.create_future())))
        await asyncio.sleep(0)
        clean_step()
    for task in waiting:
        task.cancel()


def tasks():
    """Tasks that wait for what never comes."""
    asyncio.run(serve())


def by_argument():
    """A list that is handed around and local to the program's main function: it goes when that returns."""
    kept = []
    for _ in range(STEPS):
        clean_step()
        keep_in(kept)


def keep_in(kept):
    kept.append(Buffer(MIB))


class Node:
    """A node that refers to itself by its children's parent."""

    def __init__(self, size):
        self.data = Buffer(size)
        self.child = [self]


def make_cycle(size=MIB):
    Node(size)


def cycles_without_collector():
    """Cyclic garbage with the collector switched off, as some do for speed: only the teardown frees it."""
    gc.disable()
    for _ in range(STEPS):
        clean_step()
        make_cycle()


def cycles():
    """The collector comes only once in a while: meanwhile garbage makes most of the peak."""
    for _ in range(4 * STEPS):
        clean_step()
        make_cycle(2 * MIB)


def one_growing_table():
    """A table that is replaced by a longer one in each step."""
    global results
    results = Buffer(MIB)
    for i in range(STEPS):
        results = lengthen(results, (i + 2) * MIB)
        clean_step()


def lengthen(old, size):
    longer = Buffer(size)
    gpu.work(20)
    return longer


def observers():
    """A subject keeps its observers by strong references; each was made for one request."""
    for _ in range(STEPS):
        subscribe()
        clean_step()


subject = []


class Observer:
    def __init__(self):
        self.buffer = Buffer(MIB)

    def notify(self):
        return self.buffer


def subscribe():
    subject.append(Observer().notify)


def pinned_staging():
    """Pinned staging buffers are kept by the transfer's description."""
    for _ in range(STEPS):
        describe_transfer()
        clean_step()


transfers = []


def describe_transfer():
    transfers.append({"from": gpu.PinnedBuffer(MIB)})


# ---- nothing wrong ----


def fixed_set():
    """Weights in a module's list, clean steps."""
    results.extend(Buffer(8 * MIB) for _ in range(24))
    for _ in range(STEPS):
        clean_step()


def bounded_lru_cache():
    """A cache of 32 entries over 400 keys: full at once."""
    small = functools.lru_cache(maxsize=32)(lambda key: Buffer(2 * MIB))
    for i in range(2 * STEPS):
        small(i * 7919 % 400)
        gpu.work()


def weak_cache():
    """Entries of a weak dictionary go with their users."""
    cache = weakref.WeakValueDictionary()
    users = collections.deque(maxlen=12)
    for i in range(STEPS):
        user = Buffer(2 * MIB)
        cache[i] = user
        users.append(user)
        gpu.work()


def bounded_history():
    """A deque with a limit, full after a tenth of the run."""
    history = collections.deque(maxlen=24)
    for _ in range(STEPS):
        history.append(Buffer(2 * MIB))
        clean_step()


def errors_handled():
    """Errors are handled and forgotten."""
    for i in range(STEPS):
        try:
            parse_record(i)
        except ValueError:
            pass
        clean_step()


def small_cycles():
    """Cyclic garbage, but little, and collected in every step."""
    for _ in range(STEPS):
        make_cycle(256 << 10)
        gc.collect(0)
        clean_step()


def load_and_exit():
    """Three hundred tensors are loaded, and the program ends."""
    for _ in range(300):
        append_result()


def one_step():
    """Weights, one step, the end."""
    for _ in range(100):
        append_result()
    clean_step()


def threads_that_clean_up():
    """Threads whose context goes with them."""

    def work():
        gpu.attach()
        context = Buffer(2 * MIB)
        clean_step()
        del context

    for _ in range(STEPS):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()


def finished_tasks():
    """A queue of work for asynchronous workers that is empty at the end."""

    async def run():
        queue = asyncio.Queue(8)

        async def consume():
            while True:
                item = await queue.get()
                gpu.work()
                del item
                queue.task_done()

        workers = [asyncio.ensure_future(consume()) for _ in range(2)]
        for _ in range(STEPS):
            await queue.put(Buffer(4 * MIB))
        await queue.join()
        for worker in workers:
            worker.cancel()

    asyncio.run(run())


if __name__ == "__main__":
    gpu.start()
    ending.main(globals())
