"""How fast do aeroplanes fly? A model of one's own, from two JAX functions.

The time in the air is a fixed time for climbing and approach, plus the distance over a speed. The
errors grow with the distance, and have heavy tails. No built-in family says that.
"""
# ruff: noqa: T201

import jax
import jax.numpy as jnp
from example_data import flights, parsed, some_rows
from jax.scipy.stats import norm, t

import coremcmc

NAMES = ("fixed_minutes", "miles_per_hour", "spread", "spread_per_hour", "df")
GUESS = jnp.log(jnp.array([15.0, 480.0, 5.0, 2.0, 5.0]))


def constrain(position):
    """All five are positive: they are sampled on the logarithmic scale."""
    return dict(zip(NAMES, jnp.exp(position["log"]), strict=True))


def logprior(position):
    """Log-normal around a guess: a factor of e either way is one standard deviation."""
    return norm.logpdf(position["log"], GUESS, 1.0).sum()


def loglikelihood(position, rows):
    """Student-t minutes around the time that the distance takes."""
    p = constrain(position)
    hours = rows["distance"] / p["miles_per_hour"]
    mean = p["fixed_minutes"] + 60.0 * hours
    return t.logpdf(rows["air_time"], p["df"], mean, p["spread"] + p["spread_per_hour"] * hours)


def initial(rng_key):
    """Near the guess."""
    return {"log": GUESS + 0.1 * jax.random.normal(rng_key, GUESS.shape)}


def main(arguments: list[str] | None = None) -> coremcmc.Fit:
    """Fit, and show the posterior."""
    options = parsed(__doc__, arguments)
    table = some_rows(flights(["air_time", "distance"]).astype(float), options.rows)
    model = coremcmc.FunctionModel(logprior, loglikelihood, initial, constrain)
    fit = coremcmc.fit(model, table, options.coreset_size)
    print(fit.summary())
    return fit


if __name__ == "__main__":
    main()
