#!/usr/bin/env python3
"""A small training loop with a leak, on the CUDA driver API through ctypes: no framework needed.

The leak is the one everybody writes once: a list of losses, each of which keeps its step's memory.
"""
import ctypes
import os
import sys

MIB = 1 << 20
cuda = ctypes.CDLL("libcuda.so.1")


class Tensor:
    """Device memory that lives as long as this object."""

    def __init__(self, size):
        self.pointer = ctypes.c_uint64()
        error = cuda.cuMemAlloc_v2(ctypes.byref(self.pointer), ctypes.c_size_t(size))
        if error:
            raise MemoryError(f"cuMemAlloc of {size} bytes: error {error}")

    def __del__(self):
        if self.pointer:
            cuda.cuMemFree_v2(self.pointer)


class Model:
    def __init__(self, layers):
        self.weights = [Tensor(4 * MIB) for _ in range(layers)]
        self.moments = None

    def forward(self, batch):
        return [Tensor(batch * MIB) for _ in self.weights]

    def backward(self, activations):
        gradients = []
        while activations:
            activations.pop()
            gradients.append(Tensor(4 * MIB))
        return gradients

    def step(self, gradients):
        if self.moments is None:
            self.moments = [Tensor(8 * MIB) for _ in self.weights]
        gradients.clear()


def train(steps, batch):
    model = Model(layers=6)
    losses = []
    for step in range(steps):
        activations = model.forward(batch)
        losses.append(Tensor(1 * MIB))  # the leak: the loss is kept with its memory
        model.step(model.backward(activations))
    return losses


def main():
    steps, batch = [int(word) for word in sys.argv[1:]] + [200, 3][len(sys.argv) - 1:]
    context = ctypes.c_void_p()
    if cuda.cuInit(0) or cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0):
        sys.exit("no CUDA device")
    cuda.cuCtxSetCurrent(context)
    losses = train(steps, batch)
    print(f"{steps} steps, {len(losses)} losses kept", flush=True)
    os._exit(0)  # as a job that is torn down: what is held now is what was held


if __name__ == "__main__":
    main()
