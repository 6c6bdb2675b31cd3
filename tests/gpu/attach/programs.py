"""Programs that are started without the shim and attached to while they run.

programs.py KIND STEPS FOLDER

KIND is train or generate (PyTorch), cupy, cupy_pool or jax; a hyphen and what follows it are left out. Blocks of
cupy_pool come from CuPy's pool, which calls CUDA only when it grows; those of cupy are CUDA's own. The program makes STEPS steps, each of which prints nothing and
depends on nothing but its number. It creates FOLDER/ready when it is at work, waits at step STEPS / 3 until
FOLDER/attached exists and at 2 STEPS / 3 until FOLDER/detached exists, and between the two, leaks 1 MiB a step
in `planted`. At the end it prints a digest of all losses or results."""
import hashlib
import os
import pathlib
import sys
import time

kind, steps, folder = sys.argv[1], int(sys.argv[2]), pathlib.Path(sys.argv[3])
kept, digest = [], hashlib.sha256()


def planted(allocate):
    kept.append(allocate(1 << 20))  # the leak


def wait_for(name, step):
    while not os.environ.get("ALONE") and not (folder / name).exists():
        step()  # a process at work: attaching waits for a call
        time.sleep(0.002)


def torch_train():
    import torch

    torch.manual_seed(7)
    torch.use_deterministic_algorithms(True)
    model = torch.nn.Sequential(torch.nn.Linear(512, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 512)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    batches = torch.randn(16, 256, 512, device="cuda")

    def step(number):
        batch = batches[number % 16]
        loss = (model(batch) - batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        digest.update(loss.detach().cpu().numpy().tobytes())

    return step, lambda: torch.zeros(64, device="cuda").sum().item(), \
        lambda count: torch.empty(count, dtype=torch.uint8, device="cuda")


def torch_generate():
    import torch

    torch.manual_seed(7)
    layer = torch.nn.TransformerEncoderLayer(256, 8, batch_first=True).cuda().eval()
    head = torch.nn.Linear(256, 1000).cuda()
    embed = torch.nn.Embedding(1000, 256).cuda()

    @torch.no_grad()
    def step(number):
        tokens = torch.full((4, 1), number % 1000, device="cuda")
        for _ in range(16):
            tokens = torch.cat((tokens, head(layer(embed(tokens)))[:, -1:].argmax(-1)), 1)
        digest.update(tokens.cpu().numpy().tobytes())

    return step, lambda: torch.zeros(64, device="cuda").sum().item(), \
        lambda count: torch.empty(count, dtype=torch.uint8, device="cuda")


def with_cupy(pool=False):
    import cupy

    if not pool:
        cupy.cuda.set_allocator(None)
    generator = cupy.random.default_rng(7)
    matrix = generator.standard_normal((512, 512))

    def step(number):
        digest.update(cupy.asnumpy((matrix * (number % 7 + 1)).sum(axis=0)).tobytes())

    return step, lambda: float(cupy.zeros(64).sum()), lambda count: cupy.cuda.alloc(count)


def with_jax():
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    os.environ.setdefault("XLA_PYTHON_CLIENT_ALLOCATOR", "platform")
    import jax
    import numpy

    double = jax.jit(lambda array, number: (array * number).sum(axis=0))
    array = jax.device_put(numpy.arange(512 * 512, dtype=numpy.float32).reshape(512, 512))

    def step(number):
        digest.update(numpy.asarray(double(array, number % 7 + 1)).tobytes())

    def zeros(count):  # its buffer is taken in the calling thread; device_put may leave that to another
        return jax.numpy.zeros(count, dtype=jax.numpy.uint8).block_until_ready()

    zeros(1 << 20)
    return step, lambda: numpy.asarray(double(array, 1)), zeros


def main():
    step, idle, allocate = {"train": torch_train, "generate": torch_generate, "cupy": with_cupy,
                            "cupy_pool": lambda: with_cupy(pool=True), "jax": with_jax}[kind.partition("-")[0]]()
    for number in range(3):
        step(number)
    (folder / "ready").touch()
    for number in range(steps):
        if number == steps // 3:
            wait_for("attached", idle)
        if number == 2 * steps // 3:
            (folder / "leaked").touch()
            wait_for("detached", idle)
        if steps // 3 <= number < 2 * steps // 3:
            planted(allocate)
        step(number)
    print(f"digest {digest.hexdigest()} kept {len(kept)}")


main()
