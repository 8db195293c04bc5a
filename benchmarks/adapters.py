"""What an iteration of a model from another language costs beside the built-in family.

    NPROC=1 python benchmarks/adapters.py [logistic|poisson|linear|all]

20,000 generated rows, ten features, M = 500: a built-in family and the same model through each
adapter run the same compiled loop on the same data, in turns, in one process. CPU µs an iteration,
median over the turns, and its ratio to the built-in family's.
"""

import argparse
import os
import time

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table

import coremcmc
from coremcmc.data import as_data_source
from coremcmc.fitting.fit import prepare
from coremcmc.fitting.run import Run
from coremcmc.fitting.settings import resolve

NUM_ROWS, NUM_FEATURES, CORESET_SIZE = 20_000, 10, 500
PRESETS = ("default", "paper")
TURNS, ITERATIONS, TARGET = 9, 300, 2.0


def generated_data(family):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((NUM_ROWS, NUM_FEATURES))
    eta = x @ np.linspace(1.0, -1.0, NUM_FEATURES) - 0.5
    response = {
        "logistic": lambda: (rng.random(NUM_ROWS) < 1.0 / (1.0 + np.exp(-eta))).astype(int),
        "poisson": lambda: rng.poisson(np.logaddexp(0.0, eta)),
        "linear": lambda: eta + rng.standard_normal(NUM_ROWS),
    }
    return {"x": x, "y": response[family]()}


def built_in(family, data):
    models = {
        "logistic": coremcmc.LogisticRegression,
        "poisson": coremcmc.PoissonRegression,
        "linear": coremcmc.LinearRegression,
    }
    return models[family](), data


def pymc_adapter(family, data):
    import pymc as pm

    prior = pm.Cauchy if family == "logistic" else pm.Normal
    with pm.Model() as model:
        x, y = pm.Data("x", data["x"]), pm.Data("y", data["y"])
        eta = prior("intercept", 0, 1) + x @ prior("slopes", 0, 1, shape=NUM_FEATURES)
        if family == "logistic":
            pm.Bernoulli("outcome", logit_p=eta, observed=y)
        elif family == "poisson":
            pm.Poisson("outcome", pm.math.log1pexp(eta), observed=y)
        else:
            pm.Normal("outcome", eta, pm.math.exp(0.5 * pm.Normal("log_sigma2")), observed=y)
    return coremcmc.from_pymc(model)


def numpyro_adapter(family, data):
    import numpyro
    import numpyro.distributions as dist

    prior = dist.Cauchy if family == "logistic" else dist.Normal

    def model(x, y=None):
        slopes = numpyro.sample("slopes", prior(0, 1).expand([x.shape[1]]).to_event(1))
        eta = numpyro.sample("intercept", prior(0, 1)) + x @ slopes
        if family == "logistic":
            outcome = dist.Bernoulli(logits=eta)
        elif family == "poisson":
            outcome = dist.Poisson(jax.nn.softplus(eta))
        else:
            log_sigma2 = numpyro.sample("log_sigma2", dist.Normal(0, 1))
            outcome = dist.Normal(eta, jnp.exp(0.5 * log_sigma2))
        with numpyro.plate("rows", x.shape[0]):
            numpyro.sample("y", outcome, obs=y)

    return coremcmc.from_numpyro(model, data)


CONTESTANTS = {"built-in": built_in, "NumPyro": numpyro_adapter, "PyMC": pymc_adapter}


class Contestant:
    """A run of ``fit`` past its hot start, ready to be timed."""

    def __init__(self, make, family, preset):
        began = time.process_time()
        model, data = make(family, generated_data(family))
        data = as_data_source(data, model)
        settings = resolve(model, data, CORESET_SIZE, preset, {"num_iterations": 10**7})
        settings, start, _ = prepare(model, data, settings, CORESET_SIZE, 0)
        self.run = Run(model, data, settings, start, 0, preset)
        self.feed = data.feed()
        self.advance(1)
        self.preparation = time.process_time() - began
        while not self.run.state.coreset.hot_start.is_hot:
            self.advance(100)

    def advance(self, iterations):
        """Run; return the number of evaluations."""
        first, evaluations = self.run.iteration, self.evaluations
        while self.run.iteration < first + iterations:
            most = first + iterations - self.run.iteration
            self.run._piece(self.feed, most, most)
            if int(self.run.state.failure):
                raise RuntimeError(f"the run failed with code {int(self.run.state.failure)}")
        return self.evaluations - evaluations

    @property
    def evaluations(self):
        return int(self.run.state.coreset.num_evaluations)


def measured(family, preset):
    """Yield a row of the table for each contestant."""
    contestants = {name: Contestant(make, family, preset) for name, make in CONTESTANTS.items()}
    turns = {name: [] for name in contestants}
    for _ in range(TURNS):
        for name, contestant in contestants.items():
            began = time.process_time()
            evaluations = contestant.advance(ITERATIONS)
            spent = time.process_time() - began
            turns[name].append((1e6 * spent / ITERATIONS, evaluations / ITERATIONS))
    for name, (cpu, evaluations) in ((k, np.median(v, axis=0)) for k, v in turns.items()):
        ratio = cpu / np.median(turns["built-in"], axis=0)[0]
        verdict = "" if name == "built-in" else "met" if ratio <= TARGET else "MISSED"
        yield (
            *(family, preset, name, f"{cpu:,.0f}", f"{ratio:.2f}", f"≤ {TARGET:g}", verdict),
            *(f"{evaluations:.1f}", f"{contestants[name].preparation:.1f}"),
        )


def main():
    families = ("logistic", "poisson", "linear")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("family", nargs="?", default="all", choices=[*families, "all"])
    chosen = parser.parse_args().family
    titles = ("family", "preset", "model", "CPU µs", "ratio", "target", "verdict", "evals")
    title = f"One iteration, M = {CORESET_SIZE}, NPROC = {os.environ.get('NPROC', 'default')}"
    table = Table(*titles, "CPU s before", title=title, title_justify="left")
    with jax.enable_x64(True):
        for family in families if chosen == "all" else (chosen,):
            for preset in PRESETS:
                for row in measured(family, preset):
                    table.add_row(*row)
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
