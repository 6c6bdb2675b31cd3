"""Which step of a captured CUDA graph in PyTorch takes device memory that no allocation call tells of.

graph_steps.py FOLDER runs under the shim (or without it). A line a step:

    step  FREE  NVML  RESERVED  REST  TEXT

FREE: by how much the driver's free bytes fell in the step, NVML: by how much NVML's figure for this
process rose, RESERVED: by how much PyTorch's reserved bytes rose, REST: NVML less RESERVED. Within a
capture CUDA is asked nothing: `-`. At each step the shim writes FOLDER/graph_steps.NUMBER.gmt.
"""
import ctypes
import os
import sys

import torch

shim = ctypes.CDLL(None)
recording = hasattr(shim, "gpumemtrace_mark")


class Process(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong),
                ("instance", ctypes.c_uint), ("compute", ctypes.c_uint)]


class Nvml:
    """NVML's figure for this process on device 0."""

    def __init__(self):
        self.library = ctypes.CDLL("libnvidia-ml.so.1")
        self.device = ctypes.c_void_p()
        self.library.nvmlInit_v2()
        self.library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.device))

    def own(self):
        processes, count = (Process * 128)(), ctypes.c_uint(128)
        self.library.nvmlDeviceGetComputeRunningProcesses_v3(self.device, ctypes.byref(count), processes)
        return sum(p.used for p in processes[:count.value] if p.pid == os.getpid())


class Steps:
    """Prints what changed since the step before."""

    def __init__(self, folder):
        self.folder, self.nvml, self.number = folder, Nvml(), 0
        self.last = {"free": 0, "nvml": self.nvml.own(), "reserved": 0}

    def step(self, text, capturing=False):
        now = {"nvml": self.nvml.own(), "reserved": torch.cuda.memory_reserved()}
        if not capturing:
            torch.cuda.synchronize()
            now["nvml"] = self.nvml.own()
            now["free"] = torch.cuda.mem_get_info()[0]
        fell = self.last["free"] - now["free"] if "free" in now else "-"
        rose = {key: now[key] - self.last[key] for key in ("nvml", "reserved")}
        print(f"step {fell:>12} {rose['nvml']:>12} {rose['reserved']:>12} "
              f"{rose['nvml'] - rose['reserved']:>12}  {self.number} {text}", flush=True)
        self.last.update(now)
        if recording and not capturing:
            shim.gpumemtrace_mark(text.encode())
            shim.gpumemtrace_snapshot(f"{self.folder}/graph_steps.{self.number}.gmt".encode())
        self.number += 1


def train(steps, width=512):
    """The suite's training (torch_scenarios.py)."""
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(width, 8, 4 * width, batch_first=True)
    model = torch.nn.Sequential(torch.nn.Embedding(4096, width),
                                torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False),
                                torch.nn.Linear(width, 4096)).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(steps):
        tokens = torch.randint(4096, (8, (64, 200, 128)[step % 3]), device="cuda")
        loss = torch.nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model, optimizer


def capture(steps, module, tensor, name):
    """torch.cuda.graph(), taken apart."""
    graph = torch.cuda.CUDAGraph()
    steps.step(f"{name}: graph object")
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()
    steps.step(f"{name}: stream")
    torch.cuda.empty_cache()
    steps.step(f"{name}: empty_cache before it")
    with torch.cuda.stream(stream):
        graph.capture_begin()
        steps.step(f"{name}: capture_begin", True)
        output = module(tensor)
        steps.step(f"{name}: forward captured", True)
        loss = output.sum()
        steps.step(f"{name}: sum captured", True)
        loss.backward()
        steps.step(f"{name}: backward captured", True)
        graph.capture_end()
    steps.step(f"{name}: capture_end (end of the capture and instantiation)")
    graph.replay()
    steps.step(f"{name}: first replay")
    graph.replay()
    steps.step(f"{name}: second replay")
    return graph, output


def main():
    steps = Steps(sys.argv[1])
    torch.cuda.init()
    torch.zeros(1, device="cuda")
    steps.step("first tensor")
    kept = train(3)
    steps.step("trained")
    other = torch.cuda.Stream()
    with torch.cuda.stream(other):
        held = torch.empty(3 << 20, dtype=torch.uint8, device="cuda")
        steps.step("a block on a second stream")
        torch.cuda._sleep(1000)
    steps.step("_sleep on it")
    module = torch.nn.Sequential(torch.nn.Linear(1024, 1024), torch.nn.ReLU(),
                                 torch.nn.Linear(1024, 1024)).cuda()
    tensor = torch.zeros(512, 1024, device="cuda")
    steps.step("module")
    with torch.cuda.stream(other):
        output = module(tensor)
        steps.step("warm-up: forward on the second stream")
        loss = output.sum()
        steps.step("warm-up: sum")
        loss.backward()
        steps.step("warm-up: backward")
        for _ in range(2):
            module(tensor).sum().backward()
    steps.step("warm-up: twice more")
    torch.cuda.current_stream().wait_stream(other)
    module.zero_grad(set_to_none=True)
    del output, loss
    first = capture(steps, module, tensor, "first graph")
    module.zero_grad(set_to_none=True)
    second = capture(steps, module, tensor, "second graph")
    del first, second
    torch.cuda.synchronize()
    steps.step("graphs deleted")
    torch.cuda.empty_cache()
    steps.step("empty_cache")
    del kept, held


if __name__ == "__main__":
    main()
