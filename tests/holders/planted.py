"""Plants device memory so that each block is kept alive in one way, says where each block is, and waits.

Every kind is a function below, by whose name the test calls it. It leaves blocks behind that nothing but the
planted holder refers to. The words beside it have to be in the chain, in steps of their own and in this order.
"""
import array
import asyncio
import atexit
import collections
import contextvars
import csv
import ctypes
import functools
import gc
import io
import itertools
import json
import operator
import os
import queue
import signal
import sys
import threading
import types
import weakref

BLOCK = 1 << 20
kinds = []          # (name, function, words, options)
blocks = {}         # name -> how many


class Driver:
    """The driver's allocation calls."""

    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")
        self.context = ctypes.c_void_p()
        assert self.library.cuInit(0) == 0
        assert self.library.cuDevicePrimaryCtxRetain(ctypes.byref(self.context), 0) == 0

    def alloc(self, pointer):
        self.library.cuCtxSetCurrent(self.context)
        if self.library.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(BLOCK)):
            raise MemoryError(BLOCK)

    def free(self, pointer):
        self.library.cuMemFree_v2(pointer)


driver = Driver()
name_of_next = [None]


def count_block():
    blocks[name_of_next[0]] = blocks.get(name_of_next[0], 0) + 1


class Buffer:
    """A block that is freed with its last reference."""

    def __init__(self):
        self.pointer = ctypes.c_uint64()
        driver.alloc(self.pointer)
        count_block()

    def __del__(self):
        if driver:
            driver.free(self.pointer)


def kind(*words, **options):
    def add(function):
        kinds.append((function.__name__, function, words, options))
        return function
    return add


@kind("module __main__", "kept_global", "Buffer.pointer")
def global_variable():
    global kept_global
    kept_global = Buffer()


@kind("module __main__", "Trainer.losses", "list (40 entries)")
def list_of_losses():
    global trainer
    class Trainer:
        def __init__(self):
            self.losses = []
    trainer = Trainer()
    for _ in range(40):
        trainer.losses.append(Buffer())


@kind("module __main__", "sessions", "dict (3 entries)", "Session.buffer")
def session_table():
    global sessions
    class Session:
        def __init__(self):
            self.buffer = Buffer()
    sessions = {number: Session() for number in range(3)}


@kind("module __main__", "tables", "dict (4 entries)", "list (2 to 5 entries)")
def lists_of_several_sizes():
    global tables
    tables = {user: [Buffer() for _ in range(2 + user)] for user in range(4)}


@kind("module __main__", "Registry", "class", "Registry.cache")
def class_attribute():
    global Registry
    class Registry:
        cache = [Buffer()]


@kind("module __main__", "step", "default argument cache")
def default_argument():
    global step
    def step(x, y=1, cache=Buffer()):
        return x
    

@kind("module __main__", "keyword_step", "default argument store")
def keyword_default():
    global keyword_step
    def keyword_step(x, *, store=Buffer()):
        return x


@kind("module __main__", "saved_error", "ValueError.__traceback__", "frame failing", "local activations")
def exception_traceback():
    global saved_error
    def failing():
        activations = Buffer()
        raise ValueError("planted")
    try:
        failing()
    except ValueError as error:
        saved_error = error


@kind("module __main__", "chained", "__context__", "__traceback__", "local inner_tensor")
def exception_context():
    global chained
    def inner():
        inner_tensor = Buffer()
        raise KeyError("planted")
    try:
        try:
            inner()
        except KeyError:
            raise RuntimeError("planted")
    except RuntimeError as error:
        chained = error


@kind("module __main__", "hook", "closure variable captured")
def hook_closure():
    global hook
    captured = Buffer()
    def hook(grad):
        return captured


@kind("module __main__", "load_weights", "lru_cache of load_weights")
def lru_cache_bounded():
    global load_weights
    @functools.lru_cache(maxsize=8)
    def load_weights(name):
        return Buffer()
    load_weights("a")
    load_weights("b")


@kind("module __main__", "load_all", "lru_cache of load_all")
def lru_cache_unbounded():
    global load_all
    @functools.lru_cache(maxsize=None)
    def load_all(name):
        return Buffer()
    load_all("a")


@kind("unreachable cycle", "Node", garbage=True)
def cycle():
    class Node:
        pass
    one, two = Node(), Node()
    one.other, two.other = two, one
    one.buffer = Buffer()
    one.more = [Buffer()]


@kind("module __main__", "paused", "generator produce", "local chunk")
def generator():
    global paused
    def produce():
        chunk = Buffer()
        yield 1
        yield chunk
    paused = produce()
    next(paused)


@kind("module __main__", "started", "coroutine fetch", "local response")
def coroutine():
    global started
    class Pause:
        def __await__(self):
            yield
    async def fetch():
        response = Buffer()
        await Pause()
        return response
    started = fetch()
    started.send(None)


@kind("module __main__", "stream", "async_generator rows", "local row")
def async_generator():
    global stream
    class Pause:
        def __await__(self):
            yield
    async def rows():
        row = Buffer()
        await Pause()
        yield row
    stream = rows()
    global stream_step
    stream_step = stream.__anext__()
    stream_step.send(None)


@kind("module __main__", "queue_of", "deque (5 entries)")
def deque():
    global queue_of
    queue_of = collections.deque(maxlen=5)
    for _ in range(5):
        queue_of.append(Buffer())


@kind("module __main__", "long_queue", "deque (100 entries)")
def long_deque():
    global long_queue
    long_queue = collections.deque()
    for number in range(200):
        long_queue.append(number)
        if number >= 100:
            long_queue.popleft()
    long_queue[70] = Buffer()


@kind("module __main__", "slotted", "Slotted.tensor")
def slots():
    global slotted
    class Base:
        __slots__ = ("first",)
    class Slotted(Base):
        __slots__ = ("tensor", "other")
    slotted = Slotted()
    slotted.first = None
    slotted.tensor = Buffer()


@kind("weak", note="only a weak reference")
def weak_only():
    global weak_table
    buffer = Buffer()
    weak_table = {"last": weakref.ref(buffer)}
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(buffer))


@kind("thread worker-7", "frame work", "local batch", made_in="work")
def thread_local_variable():
    ready = threading.Event()
    def work(ready):
        batch = Buffer()
        ready.set()
        forever.wait()
        return batch
    thread = threading.Thread(target=work, args=(ready,), name="worker-7", daemon=True)
    thread.start()
    ready.wait()


@kind("storage_of", words_any=("thread-local storage", "_local"))
def threading_local():
    global storage_of
    storage_of = threading.local()
    storage_of.buffer = Buffer()


@kind("module __main__", "callback", "bound method", "Handler.on_event", "Handler.state")
def bound_method():
    global callback
    class Handler:
        def __init__(self):
            self.state = Buffer()
        def on_event(self):
            pass
    callback = Handler().on_event


@kind("module __main__", "job", "functools.partial of", "run_job, argument 1")
def partial():
    global job
    def run_job(number, buffer, size=0):
        pass
    job = functools.partial(run_job, 1, Buffer())


@kind("module __main__", "keyed_job", "run_job, argument buffer")
def partial_keyword():
    global keyed_job
    def run_job(buffer):
        pass
    keyed_job = functools.partial(run_job, buffer=Buffer())


@kind("module __main__", "descriptor", "Descriptor.data")
def ctypes_structure():
    global descriptor
    class Descriptor(ctypes.Structure):
        _fields_ = [("size", ctypes.c_int), ("rank", ctypes.c_int), ("data", ctypes.c_void_p)]
    pointer = ctypes.c_uint64()
    driver.alloc(pointer)
    count_block()
    descriptor = Descriptor(1, 2, pointer.value)


@kind("module __main__", "pointers", "c_void_p_Array_4")
def ctypes_array():
    global pointers
    pointer = ctypes.c_uint64()
    driver.alloc(pointer)
    count_block()
    pointers = (ctypes.c_void_p * 4)()
    pointers[2] = pointer.value


@kind("module __main__", "raw_pointer", "int")
def plain_int():
    global raw_pointer
    pointer = ctypes.c_uint64()
    driver.alloc(pointer)
    count_block()
    raw_pointer = pointer.value


@kind("module __main__", "addresses", "array")
def array_of_words():
    global addresses
    pointer = ctypes.c_uint64()
    driver.alloc(pointer)
    count_block()
    addresses = array.array("Q", [0, 0, pointer.value, 0])


@kind("module __main__", "group", "set (2 entries)")
def set_element():
    global group
    group = {Buffer(), 5}


@kind("module __main__", "pair", "tuple (2 entries)")
def tuple_element():
    global pair
    pair = (1, Buffer())


@kind("module __main__", "settings", "SimpleNamespace")
def namespace():
    global settings
    settings = types.SimpleNamespace(device=0, scratch=Buffer())


@kind("module __main__", "ordered", "OrderedDict (1 entry)")
def ordered_dict():
    global ordered
    ordered = collections.OrderedDict(a=Buffer())


@kind("module __main__", "by_name", "defaultdict (2 entries)")
def default_dict():
    global by_name
    by_name = collections.defaultdict(list)
    by_name["a"].append(Buffer())
    by_name["b"].append(5)


@kind("module __main__", "Lists", words_any=("Stack.top", "Stack (1 entry)"))
def list_subclass():
    global Lists
    class Stack(list):
        pass
    Lists = Stack([1])
    Lists.top = Buffer()


@kind("module __main__", "opened", "Opened.late")
def materialized_dict():
    global opened
    class Opened:
        pass
    opened = Opened()
    opened.early = 1
    opened.__dict__["late"] = Buffer()
    opened.__dict__[5] = 1


@kind("module __main__", "mapped", "list_iterator")
def iterator():
    global mapped
    mapped = iter([1, 2, Buffer()])


@kind("module __main__", "lazily", "map")
def map_object():
    global lazily
    captured = Buffer()
    lazily = map(lambda x: captured, [1, 2])


@kind("module weakref", "class finalize._registry", "_Info.args")
def weakref_finalize():
    global finalizer_of
    class Owner:
        pass
    finalizer_of = Owner()
    weakref.finalize(finalizer_of, print, Buffer())


@kind("atexit arguments")
def atexit_argument():
    def goodbye(buffer):
        pass
    atexit.register(goodbye, Buffer())


@kind("Context.ctx_vars", "hamt_bitmap_node")
def context_variable():
    global context_of
    context_of = contextvars.ContextVar("context_of")
    context_of.set(Buffer())


@kind("module __main__", "prop_class", "property")
def property_closure():
    global prop_class
    captured = Buffer()
    class prop_class:
        value = property(lambda self: captured)


@kind("module __main__", "wrapped", "original.state")
def function_attribute():
    global wrapped
    def original():
        pass
    original.state = Buffer()
    @functools.wraps(original)
    def wrapped():
        pass


@kind("Task.coro", "coroutine waits", "local tensor")
def asyncio_task():
    global task_loop, the_task
    task_loop = asyncio.new_event_loop()
    async def waits():
        tensor = Buffer()
        await asyncio.sleep(1000)
        return tensor
    async def begin():
        global the_task
        the_task = asyncio.ensure_future(waits())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    task_loop.run_until_complete(begin())


@kind("module __main__", "future", "_result")
def asyncio_future():
    global future
    future = task_loop.create_future()
    future.set_result([Buffer()])


@kind("module __main__", "metaclass_made", "class", "Made.buffer")
def metaclass():
    global metaclass_made
    class Meta(type):
        pass
    class Made(metaclass=Meta):
        buffer = Buffer()
    metaclass_made = Made


@kind("module planted_module", "weights")
def module_attribute():
    module = types.ModuleType("planted_module")
    module.weights = Buffer()
    sys.modules["planted_module"] = module


@kind("module __main__", "static_holder", "static")
def static_method():
    global static_holder
    captured = Buffer()
    class static_holder:
        @staticmethod
        def static():
            return captured


@kind("thread MainThread", "frame main", "local kept_by_main")
def main_local():
    pass    # made by main itself


@kind("module __main__", "error_group", "OSError")
def exception_attribute():
    global error_group
    error_group = OSError("planted")
    error_group.payload = Buffer()


@kind("module __main__", "stop", "StopIteration.value")
def exception_member():
    global stop
    stop = StopIteration([Buffer()])


@kind("unreachable cycle", garbage=True)
def cycle_of_frame():
    # an exception that its own frame refers to
    def failing():
        tensor = Buffer()
        try:
            raise ValueError("planted")
        except ValueError as error:
            kept = error
    failing()


@kind("module __main__", "owner_of", "Owner.inner", "Buffer.pointer")
def noted_address():
    global owner_of
    class Owner:
        def __init__(self):
            self.inner = Buffer()
    owner_of = Owner()
    notes[owner_of.inner.pointer.value] = "noted"
    note_list.append(owner_of.inner.pointer.value)


@kind("module __main__", "owner_of_int", "Handle.pointer", "int")
def noted_int():
    global owner_of_int
    class Handle:
        def __init__(self, pointer):
            self.pointer = pointer
    pointer = ctypes.c_uint64()
    driver.alloc(pointer)
    count_block()
    owner_of_int = {"handles": [[Handle(pointer.value)]]}
    note_list.append(pointer.value)


# Expressions that make what a global variable of their name keeps, words of its chain, and from which minor version on.
EXPRESSIONS = (
    ("simple_queue", "in_queue(queue.SimpleQueue(), 1, Buffer())", "SimpleQueue", 8),
    ("queue_ring", "in_queue(queue.SimpleQueue(), *range(13), Buffer(), 1)", "SimpleQueue", 8),
    ("queue_with_lock", "in_queue(queue.PriorityQueue(), (1, Buffer()))", "PriorityQueue.queue", 8),
    ("cycled", "after(3, itertools.cycle(iter([Buffer(), 2])))", "cycle.", 8),
    ("chain_of", "after(1, itertools.chain([1, 2, Buffer()], [3]))", "chain.active", 8),
    ("teed", "tee_behind(iter([1, Buffer()] + [3] * 100))", "_tee_dataobject", 8),
    ("grouped", "itertools.groupby([1], key=functools.partial(max, Buffer()))", "groupby.keyfunc", 8),
    ("sliced", "itertools.islice([1, Buffer()], 1, 2)", "islice.it", 8),
    ("product_of", "itertools.product([1, 2], [Buffer(), 4])", "product.pools", 8),
    ("permuted", "itertools.permutations([1, 2, Buffer()])", "permutations.pool", 8),
    ("combined", "after(1, itertools.combinations([1, 2, Buffer()], 2))", "combinations.", 8),
    ("zip_filled", "itertools.zip_longest([1], [2, 3], fillvalue=Buffer())", "zip_longest.fillvalue", 8),
    ("accumulated", "itertools.accumulate([1, 2], max, initial=Buffer())", "accumulate.initial", 8),
    ("repeated", "itertools.repeat(Buffer())", "repeat.element", 8),
    ("pairs", "itertools.pairwise([Buffer(), 2, 3])", "pairwise.it", 10),
    ("batches", "itertools.batched([Buffer(), 2, 3], 2)", "batched.it", 12),
    ("enumerated", "enumerate([1, Buffer()])", "enumerate.en_sit", 8),
    ("reversed_keys", "reversed({1: Buffer()}.keys())", "dict_reversekeyiterator.di_dict", 8),
    ("ordered_values", "iter(collections.OrderedDict(a=Buffer()).values())", "odict_iterator.di_odict", 8),
    ("deque_walk", "iter(collections.deque([Buffer()]))", "_deque_iterator.deque", 8),
    ("item_of", "operator.itemgetter(Buffer(), 2)", "itemgetter.item", 8),
    ("call_later", "operator.methodcaller('f', x=Buffer())", "methodcaller.kwds", 8),
    ("append_to", "Attributes(Buffer()).append", "bound method append", 8),
    ("view_of", "memoryview(Outer(1, Inner(2, address_of_block())))", "memoryview.obj \u2192 Outer.inner.data", 8),
    ("rows_of", "csv.reader([Buffer()])", "reader.input_iter", 8),
    ("read_and_write", "io.BufferedRWPair(Raw(Buffer()), Raw(None))", "BufferedRWPair.reader", 8),
    ("local_data", "in_thread_local(threading.local(), Buffer())", "_local.buffer", 8),
)


class Attributes(list):
    def __init__(self, buffer):
        self.buffer = buffer


class Inner(ctypes.Structure):
    _fields_ = [("rank", ctypes.c_uint64), ("data", ctypes.c_void_p)]


class Outer(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint64), ("inner", Inner)]


class Raw(io.RawIOBase):
    def __init__(self, buffer):
        self.buffer = buffer
    def readable(self):
        return True
    writable = readable


def address_of_block():
    pointer = ctypes.c_uint64()
    driver.alloc(pointer)
    count_block()
    return pointer.value


def in_queue(queue, *items):
    for item in items:
        queue.put(item)
    for _ in items[2:]:
        queue.put(queue.get())
    return queue


def after(count, iterator):
    for _ in range(count):
        next(iterator)
    return iterator


def tee_behind(items):
    ahead, behind = itertools.tee(items)
    after(70, ahead)
    return behind


def in_thread_local(storage, buffer):
    storage.buffer = buffer
    return storage


for name, expression, words, since in EXPRESSIONS:
    if sys.version_info >= (3, since):
        exec(f"def {name}():\n    global kept_{name}\n    kept_{name} = {expression}")
        kind("module __main__", f"kept_{name}", words)(globals()[name])


@kind("module __main__", "handles", "exception being handled", "frame fails", "local held", made_in="fails")
def generator_handles():
    global handles
    def fails():
        held = Buffer()
        raise ValueError("planted")
    def produce():
        try:
            fails()
        except ValueError:
            yield
    handles = produce()
    next(handles)


@kind("unreachable cycle", garbage=True)
def cycle_of_class():
    class Model:
        weights = Buffer()


@kind("unreachable cycle", garbage=True)
def cycle_of_cache():
    @functools.lru_cache(maxsize=4)
    def load(name):
        return load, buffer
    buffer = Buffer()
    load("a")


@kind("unreachable cycle", garbage=True)
def cycle_of_iterators():
    steps = [Buffer()]
    steps.append(itertools.chain(steps, [operator.itemgetter((steps, 1))]))
    steps.append(in_queue(queue.SimpleQueue(), steps, 1))


@kind("unreachable cycle", garbage=True)
def cycle_of_view():
    class Bytes(bytearray):
        pass
    data = Bytes(8)
    data.buffer = Buffer()
    data.view = memoryview(data)


@kind("global kept_global (libcublas.so.13)")
def global_of_library():
    count_block()
    keeper.keep_in_global(size)


@kind("global kept_table (libcublas.so.13)", "heap object of 24 bytes, word at +16", note="have no class")
def heap_of_library():
    count_block()
    keeper.keep_in_table(size)


@kind(note="the library libcublas.so.13, which allocated it, holds it: no other reference was found")
def hidden_in_library():
    count_block()
    keeper.keep_hidden(size)


@kind("global kept_object (libcublas.so.13)", "Buffer.pointer", note="native code has the address of the Python object")
def object_of_library():
    buffer = ctypes.py_object(Buffer())
    ctypes.pythonapi.Py_IncRef(buffer)
    keeper.keep_object(buffer)


@kind("global", "functools.partial of print, argument 0", note="native code has the address of the Python object")
def signal_handler():
    signal.signal(signal.SIGUSR2, functools.partial(print, Buffer()))


keeper = ctypes.CDLL(os.environ["KEEPER"])
size = ctypes.c_size_t(BLOCK)
notes = {}
note_list = []
forever = threading.Event()


def main():
    gc.collect()
    gc.disable()
    wanted = sys.argv[1:]
    name_of_next[0] = "main_local"
    kept_by_main = Buffer()
    for name, function, words, options in kinds:
        if not wanted or name in wanted:
            name_of_next[0] = name
            function()
    print(json.dumps({
        "bytes": BLOCK,
        "kinds": {name: {"blocks": blocks.get(name, 0), "words": words, "any": options.get("words_any", ()),
                         "garbage": options.get("garbage", False), "note": options.get("note", ""),
                         "made_in": options.get("made_in", name)}
                  for name, function, words, options in kinds if not wanted or name in wanted}}), flush=True)
    while True:
        line = sys.stdin.readline()
        if not line:
            break
        if line.strip() == "collect":
            gc.collect()
            print("collected", flush=True)
    os._exit(0)


main()
