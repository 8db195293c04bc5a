"""Which airline is late? A logistic regression with a level for each airline, written in PyMC.

The levels share a prior whose spread is learned. Each level is one parameter for many rows, so that
the rows are independent given the parameters, as a coreset needs. The levels themselves are the
parameters (the centred form), which suits levels that many rows speak of.
"""
# ruff: noqa: T201

import pandas as pd
import pymc as pm
from example_data import flights, parsed, some_rows

import coremcmc

FEATURES = ["hour", "distance", "temp", "precip", "wind_speed"]


def late_flights(table: pd.DataFrame) -> pm.Model:
    """Return the model: more than half an hour late, given airline and weather."""
    airline, airlines = pd.factorize(table["carrier"], sort=True)
    features = table[FEATURES]
    standardized = ((features - features.mean()) / features.std()).to_numpy()
    with pm.Model(coords={"airline": airlines, "feature": FEATURES}) as model:
        x = pm.Data("x", standardized, dims=("flight", "feature"))
        who = pm.Data("who", airline, dims="flight")
        y = pm.Data("y", (table["arr_delay"] > 30).to_numpy(int), dims="flight")

        mean = pm.Normal("mean", -1.5, 1.0)
        spread = pm.HalfNormal("spread", 1.0)
        level = pm.Normal("level", mean, spread, dims="airline")
        slope = pm.Normal("slope", 0.0, 1.0, dims="feature")
        pm.Bernoulli("late", logit_p=level[who] + x @ slope, observed=y, dims="flight")
    return model


def main(arguments: list[str] | None = None) -> coremcmc.Fit:
    """Fit, and rank the airlines."""
    options = parsed(__doc__, arguments)
    table = some_rows(flights(["arr_delay", "carrier", *FEATURES]), options.rows)
    pymc_model = late_flights(table)
    fit = coremcmc.fit(*coremcmc.from_pymc(pymc_model), options.coreset_size)
    print(fit.summary())

    level = fit.posterior["level"].reshape(-1, len(pymc_model.coords["airline"]))
    ranking = pd.DataFrame(
        {"log odds": level.mean(axis=0), "sd": level.std(axis=0)},
        index=pymc_model.coords["airline"],
    )
    print(f"\n{ranking.sort_values('log odds', ascending=False).round(2)}")
    return fit


if __name__ == "__main__":
    main()
