"""Case 30 of docs/cases.md: JAX takes most of the device at once, by design. Prints what XLA says, as JSON."""
import json
import os

import jax
import jax.numpy as jnp

step = jax.jit(lambda w, x: w - 0.01 * (x.T @ (x @ w)) / x.shape[0])
w, x = jnp.ones((512, 512)), jnp.ones((1024, 512))
for _ in range(50):
    w = step(w, x)
w.block_until_ready()
stats = jax.local_devices()[0].memory_stats() or {}
print(json.dumps({"pool": stats.get("pool_bytes"), "limit": stats.get("bytes_limit")}), flush=True)
os._exit(0)
