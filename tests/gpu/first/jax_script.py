"""A JAX script, with XLA's preallocation as it is by default or switched off by the environment."""
import json
import os

import jax
import jax.numpy as jnp


@jax.jit
def step(weights, data):
    return weights - 0.01 * jax.grad(lambda w: jnp.mean((data @ w) ** 2))(weights)


weights = jnp.ones((1024, 1024))
data = jnp.ones((2048, 1024))
for _ in range(10):
    weights = step(weights, data)
weights.block_until_ready()
stats = jax.devices()[0].memory_stats() or {}
print(json.dumps({k: stats.get(k) for k in
                  ("bytes_in_use", "peak_bytes_in_use", "bytes_reserved", "pool_bytes",
                   "bytes_limit", "num_allocs")}), flush=True)
os._exit(0)
