"""What recording costs a host-bound transformer step (facts.md: 12 layers, d=512, batch 8 x 128).

torch_cost.py step [--history]      runs one process and prints its median step in milliseconds
torch_cost.py pairs SHIM FOLDER [N] N pairs of plain, shim and PyTorch's own recorder, in turn
"""
import json
import os
import statistics
import subprocess
import sys
import time

WARM_UP, STEPS = 15, 60


def step(history):
    import torch

    torch.manual_seed(0)
    if history:
        torch.cuda.memory._record_memory_history(stacks="all")
    layer = torch.nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 12, enable_nested_tensor=False).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    data = torch.randn(8, 128, 512, device="cuda")
    times = []
    for i in range(WARM_UP + STEPS):
        if i == WARM_UP:
            before = torch.cuda.memory_stats()["allocation.all.allocated"]
        start = time.perf_counter()
        loss = model(data).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        torch.cuda.synchronize()
        times.append(1000 * (time.perf_counter() - start))
    blocks = torch.cuda.memory_stats()["allocation.all.allocated"] - before
    print(json.dumps({"median_ms": statistics.median(times[WARM_UP:]), "blocks": blocks // STEPS}))


def run(*arguments, **environment):
    done = subprocess.run([sys.executable, __file__, "step", *arguments], capture_output=True,
                          check=True, env=dict(os.environ, **environment))
    return json.loads(done.stdout.splitlines()[-1])


def pairs(shim, folder, count):
    rows = []
    for i in range(count):
        plain = run()
        traced = run(LD_PRELOAD=shim, GPUMEMTRACE_OUT=f"{folder}/cost.{i}.gmt",
                     GPUMEMTRACE_QUIET="1")
        history = run("--history")
        rows.append([r["median_ms"] for r in (plain, traced, history)])
        print(f"pair {i}: plain {rows[-1][0]:.2f} ms, gpumemtrace {rows[-1][1]:.2f} ms, "
              f"_record_memory_history {rows[-1][2]:.2f} ms ({plain['blocks']} blocks a step)",
              flush=True)
    for name, column in (("gpumemtrace", 1), ("_record_memory_history", 2)):
        added = [100 * (row[column] / row[0] - 1) for row in rows]
        print(f"{name}: {statistics.median(added):+.1f} % of the median step "
              f"({min(added):+.1f} to {max(added):+.1f})")


if __name__ == "__main__":
    if sys.argv[1] == "step":
        step("--history" in sys.argv)
    else:
        pairs(sys.argv[2], sys.argv[3], int(sys.argv[4]) if len(sys.argv) > 4 else 5)
