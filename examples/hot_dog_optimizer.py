"""Hot DoG on an ordinary problem: a small neural network learns the time in the air.

Nothing here is a coreset. Hot DoG has no learning rate; ADAM is tried with five.
"""
# ruff: noqa: T201

import jax
import jax.numpy as jnp
import numpy as np
import optax
from example_data import flights, parsed, some_rows

import coremcmc

FEATURES = ["distance", "hour", "month", "temp", "wind_speed", "pressure"]
HIDDEN, BATCH = 32, 256


def network(params, x):
    """One hidden layer."""
    return jnp.tanh(x @ params["w1"] + params["b1"]) @ params["w2"] + params["b2"]


def mean_squared_error(params, x, y):
    """Of standardized times, so that 1 is the error of a constant."""
    return jnp.mean((network(params, x) - y) ** 2)


def train(optimizer, x, y, num_steps, seed=0):
    """Minibatch gradient descent; returns the error over all rows."""
    key_1, key_2, key_batches = jax.random.split(jax.random.key(seed), 3)
    params = {
        "w1": jax.random.normal(key_1, (x.shape[1], HIDDEN)) / np.sqrt(x.shape[1]),
        "b1": jnp.zeros(HIDDEN),
        "w2": jax.random.normal(key_2, (HIDDEN,)) / np.sqrt(HIDDEN),
        "b2": jnp.zeros(()),
    }

    def step(carry, key):
        params, state = carry
        rows = jax.random.randint(key, (BATCH,), 0, len(y))
        gradient = jax.grad(mean_squared_error)(params, x[rows], y[rows])
        updates, state = optimizer.update(gradient, state, params)
        return (optax.apply_updates(params, updates), state), None

    @jax.jit
    def run(params):
        keys = jax.random.split(key_batches, num_steps)
        (params, _), _ = jax.lax.scan(step, (params, optimizer.init(params)), keys)
        return mean_squared_error(params, x, y)

    return float(run(params))


def standardized(columns) -> jax.Array:
    """Mean 0, sd 1."""
    values = np.asarray(columns, float)
    return jnp.asarray((values - values.mean(axis=0)) / values.std(axis=0))


def main(arguments: list[str] | None = None, num_steps: int = 5_000) -> dict[str, float]:
    """Train with both, and print the errors."""
    options = parsed(__doc__, arguments)
    table = some_rows(flights(["air_time", *FEATURES]), options.rows)
    x, y = standardized(table[FEATURES]), standardized(table["air_time"])

    optimizers = {"hot_dog()": coremcmc.hot_dog()}
    optimizers |= {f"adam({rate:g})": optax.adam(rate) for rate in (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)}
    errors = {name: train(optimizer, x, y, num_steps) for name, optimizer in optimizers.items()}
    for name, error in errors.items():
        print(f"{name:<14} mean squared error {error:.4f}")
    return errors


if __name__ == "__main__":
    main()
