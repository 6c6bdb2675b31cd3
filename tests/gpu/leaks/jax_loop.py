"""200 steps in JAX that drop what they make."""
import jax
import jax.numpy as jnp

step = jax.jit(lambda w, x: w - 0.01 * (x.T @ (x @ w)) / x.shape[0])
w, x = jnp.ones((512, 512)), jnp.ones((1024, 512))
for _ in range(200):
    w = step(w, x)
w.block_until_ready()
