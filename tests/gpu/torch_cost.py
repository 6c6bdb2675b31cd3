"""What recording costs PyTorch: a host-bound training step (12 layers, d = 512, batch 8 x 128) and an
inference step of the same model (batch 1 x 128).

torch_cost.py pairs SHIM FOLDER [SETS [VARIANT...]]     SETS of processes, 5 unless said, one after another
torch_cost.py measure VARIANT                           one process of a set, told what to do on its input

VARIANT   plain       nothing; those with the shim differ from it by the environment only
          full        the shim, full stacks
          uncached    the shim, GPUMEMTRACE_STACK_CACHE=off
          disabled    the shim, GPUMEMTRACE_DISABLE=1
          history     torch.cuda.memory._record_memory_history, stacks="all"
          profiler    torch.profiler with profile_memory and with_stack

What a neighbour takes from the machine differs from second to second, by more than what is measured. A
set's processes, one a variant, therefore live at the same time on the same processors and take turns, a
few steps each, in an order drawn anew each time, while the others wait. A set's figure is the median over
its turns of a turn's median step to that of plain's in the same turn. FOLDER gets torch_cost.jsonl.
"""
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import time

WARM_UP, TURNS, STEPS, FORWARDS = 15, 16, 8, 24
VARIANTS = ("plain", "full", "history")
PROCESSORS = 4
SHIM = {"full": {}, "uncached": {"GPUMEMTRACE_STACK_CACHE": "off"}, "disabled": {"GPUMEMTRACE_DISABLE": "1"}}


def start_recorder(variant):
    import torch
    if variant == "history":
        torch.cuda.memory._record_memory_history(stacks="all")
    if variant == "profiler":
        torch.profiler.profile(profile_memory=True, with_stack=True).start()


def steps():
    """The functions that make one step each."""
    import torch

    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 12, enable_nested_tensor=False).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    data = torch.randn(8, 128, 512, device="cuda")

    def train():
        model.train()
        loss = model(data).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    @torch.inference_mode()
    def inference():
        model.eval()
        model(data[:1])

    return {"train": train, "inference": inference}


def timed(step, count):
    """Median of `count` steps in ms, after one that is not counted."""
    import torch
    times = []
    for _ in range(1 + count):
        start = time.perf_counter()
        step()
        torch.cuda.synchronize()
        times.append(1000 * (time.perf_counter() - start))
    return statistics.median(times[1:])


def blocks(step):
    """How many blocks PyTorch hands out in a step."""
    import torch
    before = torch.cuda.memory_stats()["allocation.all.allocated"]
    step()
    return torch.cuda.memory_stats()["allocation.all.allocated"] - before


def measure(variant):
    functions = steps()
    start_recorder(variant)
    for step in functions.values():
        timed(step, WARM_UP)
    print(json.dumps({name: blocks(step) for name, step in functions.items()}), flush=True)
    for line in sys.stdin:
        name, count = line.split()
        print(json.dumps(timed(functions[name], int(count))), flush=True)
    print(json.dumps(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024), flush=True)
    os._exit(0)  # what a recorder does with its events afterwards is not the step's cost


def start(variant, shim, path):
    environment = dict(os.environ)
    if variant in SHIM:
        environment.update(SHIM[variant], LD_PRELOAD=shim, GPUMEMTRACE_OUT=path, GPUMEMTRACE_QUIET="1")
    return subprocess.Popen([sys.executable, __file__, "measure", variant], text=True, env=environment,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def ask(worker, request):
    worker.stdin.write(request)
    worker.stdin.flush()
    return json.loads(worker.stdout.readline())


def end(worker):
    worker.stdin.close()
    resident = json.loads(worker.stdout.readline())
    if worker.wait():
        raise SystemExit(f"a process ended with {worker.returncode}")
    return resident


def one_set(shim, folder, number, variants):
    """Per variant: the medians of its turns of either step, blocks and resident MiB."""
    workers = {v: start(v, shim, f"{folder}/cost.{v}.{number}.gmt") for v in variants}
    result = {v: {"blocks": json.loads(worker.stdout.readline()), "train": [], "inference": []}
              for v, worker in workers.items()}
    for _ in range(TURNS):
        for name, count in (("train", STEPS), ("inference", FORWARDS)):
            for variant in random.sample(variants, len(variants)):
                result[variant][name].append(ask(workers[variant], f"{name} {count}\n"))
    for variant, worker in workers.items():
        result[variant]["resident_mib"] = end(worker)
    return result


def ratio(result, variant, name):
    return statistics.median(ours / plain for ours, plain in
                             zip(result[variant][name], result["plain"][name]))


def spread(values, text):
    return f"{text} ({text} to {text})" % (statistics.median(values), min(values), max(values))


def summary(results, variants):
    for variant in variants:
        lines = [variant]
        for name in ("train", "inference"):
            medians = [statistics.median(r[variant][name]) for r in results]
            lines.append(f"{name} {spread(medians, '%.2f')} ms")
            if variant != "plain":
                lines.append(spread([100 * (ratio(r, variant, name) - 1) for r in results], "%+.1f") + " %")
        lines.append(spread([r[variant]["resident_mib"] - r["plain"]["resident_mib"] for r in results],
                            "%+.0f") + " MiB")
        print(", ".join(lines), flush=True)


def pairs(shim, folder, sets, variants):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:PROCESSORS])
    results = []
    for number in range(sets):
        results.append(one_set(shim, folder, number, variants))
        print(f"set {number}:", ", ".join(
            f"{v} {statistics.median(results[-1][v]['train']):.2f} ms {ratio(results[-1], v, 'train'):.3f}"
            for v in variants), flush=True)
        with open(f"{folder}/torch_cost.jsonl", "a") as lines:
            lines.write(json.dumps(results[-1]) + "\n")
    print("blocks a step:", json.dumps(results[0]["plain"]["blocks"]))
    summary(results, variants)


if __name__ == "__main__":
    if sys.argv[1] == "measure":
        measure(sys.argv[2])
    else:
        pairs(sys.argv[2], sys.argv[3], int(sys.argv[4]) if len(sys.argv) > 4 else 5,
              sys.argv[5:] or list(VARIANTS))
