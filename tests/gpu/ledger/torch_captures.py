"""Graphs captured by PyTorch, as a server captures its batch sizes: torch_captures.py captures|handles|turns

captures  70 graphs of a model in one shared pool; after each NVML's rise for this process
handles   100 handles of cuBLAS; after every tenth NVML's rise
turns     says `ready`; then for each line `step N` or `graph N` it does so many training steps, or captured ones, and prints
          how many microseconds one took (turns.py)
Lines as those of ledger_steps.c.
"""
import ctypes
import os
import sys
import time

import pynvml
import torch

pynvml.nvmlInit()
device = pynvml.nvmlDeviceGetHandleByIndex(0)


def own_bytes():
    torch.cuda.synchronize()
    return next((p.usedGpuMemory for p in pynvml.nvmlDeviceGetComputeRunningProcesses(device) if p.pid == os.getpid()), -1)


class Steps:
    def __init__(self):
        self.begin()

    def begin(self):
        self.own, self.free, self.time = own_bytes(), torch.cuda.mem_get_info()[0], time.perf_counter()

    def step(self, tag, text):
        took, own, free = time.perf_counter() - self.time, own_bytes(), torch.cuda.mem_get_info()[0]
        print(f"step\t{tag}\t{own - self.own if own >= 0 else '-'}\t{self.free - free}\t{took:.6f}\t{text}", flush=True)
        self.begin()


def model():
    layers = [torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.GELU(), torch.nn.Linear(4096, 1024), torch.nn.LayerNorm(1024))
              for _ in range(24)]
    return torch.nn.Sequential(*layers).cuda().half()


def captures():
    net = model().eval()
    steps, pool, kept = Steps(), torch.cuda.graph_pool_handle(), []
    with torch.no_grad():
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            net(torch.zeros(560, 1024, device="cuda", dtype=torch.half))
        steps.step("mixed", "the model has run once on a stream of its own")
        for i in reversed(range(70)):
            inputs = torch.zeros(8 * (i + 1), 1024, device="cuda", dtype=torch.half)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=pool):
                outputs = net(inputs)
            steps.step("mixed", f"captured batch {8 * (i + 1)}")
            graph.replay()
            steps.step("mixed", "replayed")
            kept.append((graph, inputs, outputs))
    print(f"reserved\t{torch.cuda.memory_reserved()}")
    private = [segment for segment in torch.cuda.memory_snapshot() if tuple(segment["segment_pool_id"]) != (0, 0)]
    print(f"pool\t{len(kept)}\t{sum(segment['total_size'] for segment in private)}\t{sum(s['allocated_size'] for s in private)}")
    print(f"end\t{own_bytes()}", flush=True)


def handles():
    torch.zeros(1, device="cuda") @ torch.zeros(1, device="cuda")
    path = next(line.split()[-1] for line in open("/proc/self/maps") if "libcublas.so" in line)
    cublas, kept, steps = ctypes.CDLL(path), [], Steps()
    for i in range(100):
        handle = ctypes.c_void_p()
        if cublas.cublasCreate_v2(ctypes.byref(handle)):
            raise SystemExit("cublasCreate failed")
        kept.append(handle)
        if i % 10 == 9:
            steps.step("mixed", f"{i + 1} handles of cuBLAS")
    for handle in kept:
        cublas.cublasDestroy_v2(handle)
    steps.step("mixed", "all destroyed")
    print(f"end\t{own_bytes()}", flush=True)


def timed(run, rounds):
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(rounds):
        run()
    torch.cuda.synchronize()
    return (time.perf_counter() - began) * 1e6 / rounds


def turns():
    net = model().float()
    optimizer = torch.optim.Adam(net.parameters(), capturable=True)
    inputs = torch.randn(256, 1024, device="cuda")

    def one():
        optimizer.zero_grad(set_to_none=True)
        net(inputs).square().mean().backward()
        optimizer.step()

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(5):
            one()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        one()
    works = {"step": one, "graph": graph.replay}
    for work in works.values():
        timed(work, 5)
    print("ready", flush=True)
    for line in sys.stdin:
        work, rounds = line.split()
        print(f"{timed(works[work], int(rounds)):.3f}", flush=True)


if sys.argv[1] == "captures":
    captures()
elif sys.argv[1] == "handles":
    handles()
else:
    turns()
