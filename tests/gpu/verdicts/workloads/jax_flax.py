"""Programs with JAX, Flax and Optax, as people write them: jax_flax.py NAME. ../workloads.py has their labels and the
settings of XLA's allocator."""
import collections
import functools
import sys

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy
import optax


class Perceptron(nn.Module):
    @nn.compact
    def __call__(self, values):
        for _ in range(4):
            values = nn.gelu(nn.Dense(1024)(values))
        return nn.Dense(16)(values)


model, optimizer = Perceptron(), optax.adamw(1e-4)


def start():
    weights = model.init(jax.random.key(0), jnp.ones((1, 1024)))
    return weights, optimizer.init(weights)


def loss_of(weights, batch):
    return jnp.mean(model.apply(weights, batch) ** 2)


@functools.partial(jax.jit, donate_argnums=(0, 1))
def train_step(weights, state, batch):
    loss, gradients = jax.value_and_grad(loss_of)(weights, batch)
    changes, state = optimizer.update(gradients, state, weights)
    return optax.apply_updates(weights, changes), state, loss


def batches(count, rows=256):
    for index in range(count):
        yield jax.device_put(numpy.full((rows, 1024), 1 / (1 + index), dtype=numpy.float32))


# ---- trainings ----


def with_mean_of_weights():
    weights, state = start()
    mean = jax.tree.map(jnp.copy, weights)
    blend = jax.jit(lambda mean, weights: optax.incremental_update(weights, mean, 0.01), donate_argnums=0)
    for batch in batches(80):
        weights, state, loss = train_step(weights, state, batch)
        mean = blend(mean, weights)
    print(float(loss))


saved = []


def save(weights):
    saved.append(jax.tree.map(jnp.copy, weights))


def train_and_save(every, last):
    weights, state = start()
    for index, batch in enumerate(batches(120)):
        weights, state, _ = train_step(weights, state, batch)
        if index % every == every - 1:
            save(weights)
            del saved[:-last]


def checkpoints_on_device():
    """Every sixth step's weights are copied; the list is cut at a length that is never reached."""
    train_and_save(6, 1000)


def last_checkpoints():
    train_and_save(6, 2)


def losses_logged():
    """The losses stay on the device until the end: a hundred numbers."""
    weights, state = start()
    losses = []
    for batch in batches(100):
        weights, state, loss = train_step(weights, state, batch)
        losses.append(loss)
    print(float(jnp.stack(losses).mean()))


def prefetched():
    """Three batches are on their way at a time."""
    weights, state = start()
    source, waiting = batches(120), collections.deque()
    while True:
        while len(waiting) < 3 and (batch := next(source, None)) is not None:
            waiting.append(batch)
        if not waiting:
            break
        weights, state, loss = train_step(weights, state, waiting.popleft())
    print(float(loss))


# ---- rollouts and data ----


@jax.jit
def rollout(state, key):
    def step(state, key):
        state = jnp.tanh(state + 0.1 * jax.random.normal(key, state.shape))
        return state, state

    return jax.lax.scan(step, state, jax.random.split(key, 16))


def collect(bounded):
    """Trajectories of 16 states each, for a training that comes later."""
    state, trajectories = jnp.zeros((256, 512)), collections.deque(maxlen=6 if bounded else None)
    for index in range(60):
        state, trajectory = rollout(state, jax.random.key(index))
        trajectories.append(trajectory)
    state.block_until_ready()


def trajectories_kept():
    collect(False)


def trajectories_dropped():
    collect(True)


resident = {}


def on_device(name, rows):
    if name not in resident:
        resident[name] = jax.device_put(numpy.ones((rows, 1024), dtype=numpy.float32))
    return resident[name]


def shards_by_day():
    """Each day's shard is put on the device under its name, and no name comes twice."""
    weights, _ = start()
    apply = jax.jit(model.apply)
    for day in range(70):
        apply(weights, on_device(f"day-{day}", 512)).block_until_ready()


def shards_of_a_week():
    weights, _ = start()
    apply = jax.jit(model.apply)
    for day in range(70):
        apply(weights, on_device(f"day-{day % 7}", 512)).block_until_ready()


# ---- out of memory ----


def oom_all_pairs():
    points = jnp.ones((40_000, 64))
    jax.jit(lambda p: jnp.exp(-jnp.sum((p[:, None] - p[None]) ** 2, -1)))(points).block_until_ready()


def oom_shards():
    """Shards are put on the device until none fits."""
    weights, _ = start()
    apply = jax.jit(model.apply)
    for day in range(100_000):
        apply(weights, on_device(f"day-{day}", 4096)).block_until_ready()


if __name__ == "__main__":
    globals()[sys.argv[1]]()
