"""What recording costs PyTorch: a host-bound training step (12 layers, d = 512, batch 8 x 128) and an
inference loop over the same model (batch 1 x 128), both in each process.

torch_cost.py measure VARIANT       one process: prints its medians and its resident size as JSON
torch_cost.py pairs SHIM FOLDER [N] N rounds of every variant in turn: a JSON line a run, then medians

VARIANT   plain       nothing; full and uncached differ from it by the environment only
          full        the shim, full stacks
          uncached    the shim, GPUMEMTRACE_STACK_CACHE=off
          history     torch.cuda.memory._record_memory_history, stacks="all"
          profiler    torch.profiler with profile_memory and with_stack
"""
import contextlib
import json
import os
import resource
import statistics
import subprocess
import sys
import time

WARM_UP, STEPS, FORWARDS = 15, 40, 100
VARIANTS = ("plain", "full", "uncached", "history", "profiler")
LIMIT_S = 120


def blocks():
    import torch
    return torch.cuda.memory_stats()["allocation.all.allocated"]


def timed(step, count):
    """Median of `count` steps in ms, and the blocks that PyTorch handed out in one."""
    import torch
    times = []
    for i in range(WARM_UP + count):
        if i == WARM_UP:
            before = blocks()
        start = time.perf_counter()
        step()
        torch.cuda.synchronize()
        times.append(1000 * (time.perf_counter() - start))
    return round(statistics.median(times[WARM_UP:]), 3), (blocks() - before) // count


def recorder(variant):
    import torch
    if variant == "history":
        torch.cuda.memory._record_memory_history(stacks="all")
    if variant == "profiler":
        return torch.profiler.profile(profile_memory=True, with_stack=True)
    return contextlib.nullcontext()


def measure(variant):
    import torch

    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 12, enable_nested_tensor=False).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    data = torch.randn(8, 128, 512, device="cuda")

    def train():
        loss = model(data).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    @torch.inference_mode()
    def forward():
        model(data[:1])

    with recorder(variant):
        train_ms, train_blocks = timed(train, STEPS)
        model.eval()
        forward_ms, forward_blocks = timed(forward, FORWARDS)
        rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(json.dumps({"train_ms": train_ms, "train_blocks": train_blocks, "inference_ms": forward_ms,
                          "inference_blocks": forward_blocks, "max_rss_mib": round(rss / 1024, 1)}), flush=True)
        os._exit(0)  # what a recorder does with its events afterwards is not the step's cost


def environment(variant, shim, path):
    if variant not in ("full", "uncached"):
        return {}
    return {"LD_PRELOAD": shim, "GPUMEMTRACE_OUT": path, "GPUMEMTRACE_QUIET": "1",
            "GPUMEMTRACE_STACK_CACHE": "off" if variant == "uncached" else "on"}


def run(variant, shim, path):
    done = subprocess.run([sys.executable, __file__, "measure", variant], stdout=subprocess.PIPE, check=True,
                          timeout=LIMIT_S, env={**os.environ, **environment(variant, shim, path)})
    return json.loads(done.stdout.splitlines()[-1])


def median_of_pairs(rows, variant, figure, against):
    values = [against(row[variant][figure], row["plain"][figure]) for row in rows]
    return statistics.median(values), min(values), max(values)


def summary(rows):
    for variant in VARIANTS[1:]:
        texts = ["%s %+.1f %% (%+.1f to %+.1f)" %
                 (name, *median_of_pairs(rows, variant, f"{name}_ms", lambda x, y: 100 * (x / y - 1)))
                 for name in ("train", "inference")]
        memory = "resident %+.0f MiB (%+.0f to %+.0f)" % median_of_pairs(
            rows, variant, "max_rss_mib", lambda x, y: x - y)
        print(f"{variant}: {texts[0]}, {texts[1]}, {memory}", flush=True)


def pairs(shim, folder, count):
    rows = []
    for i in range(count):
        rows.append({})
        for variant in VARIANTS:
            result = rows[-1][variant] = run(variant, shim, f"{folder}/cost.{variant}.{i}.gmt")
            line = json.dumps({"round": i, "variant": variant, **result})
            print(line, flush=True)
            with open(f"{folder}/torch_cost.jsonl", "a") as lines:
                lines.write(line + "\n")
    summary(rows)


if __name__ == "__main__":
    if sys.argv[1] == "measure":
        measure(sys.argv[2])
    else:
        pairs(sys.argv[2], sys.argv[3], int(sys.argv[4]) if len(sys.argv) > 4 else 3)
