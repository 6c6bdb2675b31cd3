"""Plants tensors of PyTorch's CPU build, each kept alive in one way, tells the tracer of their memory as blocks of a
pool of the program's own, and waits until its standard input ends. See planted.py.
"""
import collections
import ctypes
import functools
import gc
import io
import json
import os
import sys

import torch

ELEMENTS = 1 << 16
driver = ctypes.CDLL("libcuda.so.1")
context = ctypes.c_void_p()
driver.cuInit(0)
driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
driver.cuCtxSetCurrent(context)
first = ctypes.c_uint64()
driver.cuMemAlloc_v2(ctypes.byref(first), ctypes.c_size_t(4096))
tracer = ctypes.CDLL(None)
kinds = {}


def pool_alloc(tensor):
    tracer.gpumemtrace_pool_alloc(ctypes.c_void_p(tensor.data_ptr()), ctypes.c_size_t(tensor.nelement() * 4), 0)


def make(**options):
    tensor = torch.ones(ELEMENTS, **options)
    pool_alloc(tensor)
    return tensor


def kind(*words, **options):
    def add(function):
        kinds[function.__name__] = dict(words=words, function=function, blocks=options.get("blocks", 1),
                                        garbage=options.get("garbage", False), note=options.get("note", ""))
        return function
    return add


@kind("module __main__", "kept_tensor", "Tensor")
def torch_global():
    global kept_tensor
    kept_tensor = make()


@kind("module __main__", "all_losses", "list (6 entries)", "Tensor", "grad_fn", "SavedVariable", blocks=6)
def torch_losses_with_graph():
    global all_losses
    all_losses = []
    for _ in range(6):
        activations = make(requires_grad=True).detach()
        weights = torch.ones(ELEMENTS, requires_grad=True)
        all_losses.append((weights * activations).sum())


@kind("module __main__", "net", "Linear._parameters", "(2 entries)", "Parameter")
def torch_parameter():
    global net
    net = torch.nn.Linear(256, 256)
    pool_alloc(net.weight)


@kind("module __main__", "net", "Parameter", "grad")
def torch_gradient():
    net(torch.ones(1, 256)).sum().backward()
    pool_alloc(net.weight.grad)


@kind("module __main__", "optimizer", "Adam.state", "exp_avg", blocks=2)
def torch_optimizer():
    global optimizer
    optimizer = torch.optim.Adam([net.weight])
    optimizer.step()
    state = optimizer.state[net.weight]
    pool_alloc(state["exp_avg"])
    pool_alloc(state["exp_avg_sq"])


@kind("module __main__", "hooked", "Tensor._backward_hooks", "closure variable captured")
def torch_hook():
    global hooked
    captured = make()
    hooked = torch.ones(4, requires_grad=True)
    hooked.register_hook(lambda grad: captured[:4] * 0)


@kind("module __main__", "layer", "Linear._forward_hooks", "closure variable outputs")
def torch_module_hook():
    global layer
    outputs = [make()]
    layer = torch.nn.Linear(2, 2)
    layer.register_forward_hook(lambda module, args, output: outputs.append(output))


@kind("module __main__", "storage_only", "UntypedStorage")
def torch_storage():
    global storage_only
    storage_only = make().storage()
    storage_only = getattr(storage_only, "_storage", None) or storage_only._untyped_storage


@kind("module __main__", "view_of", "Tensor")
def torch_view():
    global view_of
    view_of = make()[100:200]


@kind("unreachable cycle", "Tensor", garbage=True)
def torch_cycle():
    class Node:
        pass
    node = Node()
    node.itself = node
    node.tensor = make()


@kind("module __main__", "failed", "__traceback__", "frame step", "local activations", "Tensor")
def torch_exception():
    global failed
    def step():
        activations = make()
        raise RuntimeError("planted")
    try:
        step()
    except RuntimeError as error:
        failed = error


@kind("module __main__", "cached", "lru_cache of cached", "Tensor")
def torch_lru_cache():
    global cached
    @functools.lru_cache(maxsize=4)
    def cached(size):
        return make()
    cached(1)


@kind("module __main__", "bag", "Bag.tensor", "Tensor")
def torch_attribute():
    global bag
    class Bag:
        pass
    bag = Bag()
    bag.tensor = make()


@kind("module __main__", "tagged", "Tensor.extra", "Tensor")
def torch_tensor_attribute():
    global tagged
    tagged = torch.ones(1)
    tagged.extra = make()


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, saved, noted):
        if saved is not None:
            ctx.save_for_backward(x, saved)
        ctx.noted = noted
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad, None, None


@kind("module __main__", "scaled", "Tensor", "grad_fn", "ScaleBackward.saved_tensors")
def torch_saved_for_backward():
    global scaled
    scaled = Scale.apply(torch.ones(2, requires_grad=True), make(), None)


@kind("module __main__", "noted_result", "Tensor", "grad_fn", "ScaleBackward.noted", "Tensor")
def torch_context_attribute():
    global noted_result
    noted_result = Scale.apply(torch.ones(2, requires_grad=True), None, make())


@kind("module __main__", "summed", "Tensor", "grad_fn", "SumBackward0.next_functions", "ScaleBackward.saved_tensors")
def torch_saved_below():
    global summed
    summed = Scale.apply(torch.ones(2, requires_grad=True), make(), None).sum()


@kind("C++ object", "StorageImpl", note="it is held by C++")
def torch_held_by_cpp():
    global scripted
    class Weights(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("weights", torch.ones(ELEMENTS))

        def forward(self, x: int):
            return self.weights[x]
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(Weights()), file)
    file.seek(0)
    scripted = torch.jit.load(file)
    pool_alloc(scripted.weights)


gc.collect()
gc.disable()
for planted in kinds.values():
    planted["function"]()
print(json.dumps({"bytes": ELEMENTS * 4, "kinds": {
    name: {"blocks": kind["blocks"], "words": kind["words"], "any": (), "garbage": kind["garbage"], "note": kind["note"],
           "made_in": name} for name, kind in kinds.items()}}), flush=True)
sys.stdin.read()
os._exit(0)
