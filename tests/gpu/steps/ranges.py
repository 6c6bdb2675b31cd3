"""Twelve steps of training in NVTX ranges, one step under emit_nvtx. Prints for each step and its passes what
torch.cuda.max_memory_allocated() said of them, and what was allocated at their start and end. A step before the first
range makes what is made once: cuBLAS's memory, which PyTorch does not count, and the optimizer's state."""
import json
import sys

import torch

STEPS, LEAKS = 12, 7
figures = {}


class Range:
    """A range, measured by PyTorch itself. Inner ranges reset PyTorch's peak, so the outer one takes theirs."""

    stack = []

    def __init__(self, name):
        self.name = name

    def __enter__(self):
        if self.stack:
            outer = self.stack[-1]
            outer.peak = max(outer.peak, torch.cuda.max_memory_allocated())
        torch.cuda.reset_peak_memory_stats()
        self.start = self.peak = torch.cuda.memory_allocated()
        self.stack.append(self)
        torch.cuda.nvtx.range_push(self.name)

    def __exit__(self, *_):
        torch.cuda.nvtx.range_pop()
        self.stack.pop()
        self.peak = max(self.peak, torch.cuda.max_memory_allocated())
        torch.cuda.reset_peak_memory_stats()
        if self.stack:
            self.stack[-1].peak = max(self.stack[-1].peak, self.peak)
        figures.setdefault(self.name, []).append(
            {"start": self.start, "peak": self.peak, "retained": torch.cuda.memory_allocated() - self.start})


def main():
    torch.manual_seed(0)
    model = torch.nn.Sequential(*[torch.nn.Linear(2048, 2048) for _ in range(6)]).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    kept = []
    model(torch.randn(512, 2048, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    for step in range(STEPS):
        with Range(f"step {step}"):
            batch = torch.randn(512 + 64 * (step % 5), 2048, device="cuda")
            with Range("forward"):
                loss = model(batch).square().mean()
            with Range("backward"):
                loss.backward()
            with Range("update"):
                optimizer.step()
                optimizer.zero_grad()
            if step == LEAKS:
                kept.append(torch.empty(3 << 20, dtype=torch.uint8, device="cuda"))
            del loss, batch
    with torch.autograd.profiler.emit_nvtx(), torch.autograd.profiler.record_function("evaluation"):
        model(torch.randn(64, 2048, device="cuda"))
    print(json.dumps({"leaked": kept[0].untyped_storage().nbytes(), "ranges": figures}))


if __name__ == "__main__":
    sys.exit(main())
