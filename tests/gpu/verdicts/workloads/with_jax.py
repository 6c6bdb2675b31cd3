"""Programs with JAX and Optax, as people write them: with_jax.py NAME. ../workloads.py has their labels and the
settings of XLA's allocator."""
import functools
import sys

import jax
import jax.numpy as jnp
import optax


def initial(key, width=1024, layers=4):
    return [jax.random.normal(k, (width, width)) / width ** 0.5 for k in jax.random.split(key, layers)]


def loss(weights, batch):
    for weight in weights:
        batch = jax.nn.relu(batch @ weight)
    return jnp.mean(batch ** 2)


optimizer = optax.adam(1e-4)


def update(weights, state, batch):
    value, gradients = jax.value_and_grad(loss)(weights, batch)
    changes, state = optimizer.update(gradients, state)
    return optax.apply_updates(weights, changes), state, value


history = []


def train(steps, step, keep=None):
    weights = initial(jax.random.key(0))
    state = optimizer.init(weights)
    for index in range(steps):
        batch = jax.random.normal(jax.random.key(index), (512, 1024))
        weights, state, value = step(weights, state, batch)
        if keep:
            keep(weights)
    print(float(value))


def training():
    train(100, jax.jit(update))


def training_donated():
    train(100, jax.jit(update, donate_argnums=(0, 1)))


def weights_kept():
    """The weights of every step, for a plot of their path."""
    train(60, jax.jit(update), history.append)


@jax.jit
def predict(weights, batch):
    for weight in weights:
        batch = jax.nn.relu(batch @ weight)
    return batch


def predictions_kept():
    weights = initial(jax.random.key(0))
    for index in range(80):
        history.append(predict(weights, jax.random.normal(jax.random.key(index), (1024, 1024))))


def shapes_vary():
    """Each length is compiled anew; the arrays go."""
    weights = initial(jax.random.key(0))
    for index in range(30):
        print(float(predict(weights, jnp.ones((64 + index, 1024))).sum()))


@functools.lru_cache(maxsize=None)
def table(length):
    return jnp.outer(jnp.arange(length), jnp.ones(1024))


def tables_kept():
    """A table for each length, in a cache without a limit."""
    weights = initial(jax.random.key(0))
    for index in range(60):
        predict(weights, table(1024)).block_until_ready()
        table(1024 + index).sum().block_until_ready()


def oom_history():
    train(100000, jax.jit(update), history.append)


def oom_batch():
    weights = initial(jax.random.key(0))
    jax.grad(loss)(weights, jnp.ones((1 << 20, 1024)))[0].block_until_ready()


if __name__ == "__main__":
    globals()[sys.argv[1]]()
