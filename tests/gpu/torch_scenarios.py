"""What the torch suite runs on a real GPU, under the shim: one scenario per process.

torch_scenarios.py SCENARIO FOLDER writes FOLDER/SCENARIO.json: PyTorch's own figures at each mark, and
a snapshot of the shim's file made at the same moment. torch_exact.py holds the two side by side.
"""
import ctypes
import gc
import json
import sys

import torch

shim = ctypes.CDLL(None)
MIB, GIB = 1 << 20, 1 << 30


class Marks:
    """Marks of a run, each with what PyTorch says at that moment."""

    def __init__(self, scenario, folder):
        self.scenario, self.folder, self.marks, self.facts = scenario, folder, [], {}

    def add(self, name):
        path = f"{self.folder}/{self.scenario}.{len(self.marks)}.gmt"
        stats = {k: v for k, v in torch.cuda.memory_stats().items() if ".all." in k or "num_" in k}
        try:
            segments = torch.cuda.memory_snapshot()
        except RuntimeError:  # cudaMallocAsync has none
            segments = []
        shim.gpumemtrace_mark(name.encode())
        error = shim.gpumemtrace_snapshot(path.encode())
        if error:
            raise OSError(-error, f"gpumemtrace_snapshot({path})")
        self.marks.append({"name": name, "file": path, "stats": stats, "segments": [
            {"address": s["address"], "bytes": s["total_size"],
             "blocks": [[b["size"], b["state"]] for b in s["blocks"]]} for s in segments]})

    def write(self):
        free, total = torch.cuda.mem_get_info()
        document = {"scenario": self.scenario, "torch": torch.__version__, "total": total,
                    "device": torch.cuda.get_device_name(), "marks": self.marks, "facts": self.facts}
        with open(f"{self.folder}/{self.scenario}.json", "w") as out:
            json.dump(document, out)


def train(steps=12, width=512):
    """Training with Adam and sequences of varying length."""
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(width, 8, 4 * width, batch_first=True)
    model = torch.nn.Sequential(torch.nn.Embedding(4096, width),
                                torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False),
                                torch.nn.Linear(width, 4096)).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(steps):
        length = (64, 200, 128, 333, 96, 256)[step % 6]
        tokens = torch.randint(4096, (8, length), device="cuda")
        loss = torch.nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model, optimizer


def oom(request):
    try:
        request()
    except torch.OutOfMemoryError:
        return True
    return False


def empty(size):
    return torch.empty(size, dtype=torch.uint8, device="cuda")


def pressure(marks):
    """Training, a retry that recovers, an OOM that is caught, an OOM by a memory fraction."""
    kept = train()
    marks.add("trained")
    free, _ = torch.cuda.mem_get_info()
    ballast = empty((free - 3 * GIB) // (2 * MIB) * 2 * MIB)
    first, second = empty(GIB), empty(GIB)
    del first, second
    large = empty(2 * GIB)
    marks.add("retry recovered")
    marks.facts["oom"] = oom(lambda: empty(16 * GIB))
    marks.add("oom caught")
    torch.cuda.set_per_process_memory_fraction(0.01)
    marks.facts["fraction"] = oom(lambda: empty(3 * GIB))
    torch.cuda.set_per_process_memory_fraction(1.0)
    marks.add("fraction oom")
    del ballast, large
    torch.cuda.empty_cache()
    small = [empty(s * 700_000) for s in range(1, 13)]
    del small[::2]
    marks.add("holes")
    del kept, small
    gc.collect()


def graphs(marks):
    """Two streams with frees pending, a CUDA graph with its private pool, replays, empty_cache."""
    kept = train(3)
    other = torch.cuda.Stream()
    used = empty(64 * MIB)
    with torch.cuda.stream(other):
        result = empty(3 * MIB)
        torch.cuda._sleep(200_000_000)
        used.record_stream(other)
    del used
    marks.add("free pending")
    torch.cuda.synchronize()
    module = torch.nn.Sequential(torch.nn.Linear(1024, 1024), torch.nn.ReLU(),
                                 torch.nn.Linear(1024, 1024)).cuda()
    tensor = torch.zeros(512, 1024, device="cuda")
    with torch.cuda.stream(other):
        for _ in range(3):
            module(tensor).sum().backward()
    torch.cuda.current_stream().wait_stream(other)
    module.zero_grad(set_to_none=True)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        output = module(tensor)
        output.sum().backward()
    marks.add("captured")
    for _ in range(5):
        graph.replay()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    marks.add("replayed")
    del kept, result, graph, output, module
    gc.collect()
    torch.cuda.empty_cache()
    marks.add("emptied")


def libraries(marks):
    """cuBLAS, cuDNN, cuFFT and cuSOLVER: memory of their own, for the ledger."""
    a = torch.randn(2048, 2048, device="cuda")
    marks.add("first tensor")
    a @ a
    torch.cuda.synchronize()
    marks.add("cuBLAS")
    torch.nn.functional.conv2d(torch.randn(8, 64, 128, 128, device="cuda"),
                               torch.randn(64, 64, 3, 3, device="cuda"))
    torch.cuda.synchronize()
    marks.add("cuDNN")
    torch.fft.fft2(a)
    torch.cuda.synchronize()
    marks.add("cuFFT")
    torch.linalg.cholesky(a @ a.T + 2048 * torch.eye(2048, device="cuda"))
    torch.linalg.eigvalsh(a[:512, :512])
    torch.cuda.synchronize()
    marks.add("cuSOLVER")


def asynchronous(marks):
    """backend:cudaMallocAsync: PyTorch counts nothing, the shim does."""
    sizes = [3 * MIB, 70 * MIB, 1000, 511 * MIB]
    tensors = [empty(size) for size in sizes]
    marks.facts["live"] = sum(sizes)
    marks.add("four tensors")
    del tensors[1]
    marks.facts["left"] = sum(sizes) - sizes[1]
    marks.add("one freed")


def capacity(marks):
    """GPUMEMTRACE_CAPACITY=20GiB: how many GiB can be had, and does the retry logic recover?"""
    blocks = []
    while len(blocks) < 64 and not oom(lambda: blocks.append(empty(GIB))):
        pass
    marks.facts["blocks"] = len(blocks)
    free, total = torch.cuda.mem_get_info()
    marks.facts["free"], marks.facts["total"] = free, total
    marks.add("full")
    del blocks[:4]
    large = empty(4 * GIB)  # four cached segments of 1 GiB must go first
    marks.add("recovered")
    del large


SCENARIOS = {"pressure": pressure, "expandable": pressure, "graphs": graphs, "libraries": libraries,
             "async": asynchronous, "capacity": capacity}

if __name__ == "__main__":
    all_marks = Marks(sys.argv[1], sys.argv[2])
    SCENARIOS[sys.argv[1]](all_marks)
    all_marks.write()
