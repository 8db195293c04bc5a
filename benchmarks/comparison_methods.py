"""The methods of the comparison: each yields rows of the results table."""

import resource
import time
import warnings

import comparison_problems as problems
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import HMCECS, MCMC, NUTS

import coremcmc
from coremcmc.data import as_data_source
from coremcmc.posterior.mode import laplace_approximation
from coremcmc.posterior.target import Target

__all__ = ["METHODS"]

SEEDS = range(5)
SUBSAMPLE_SEEDS = range(2)
WARMUP, DRAWS = 500, 1000
MOST_SECONDS = 60.0  # of CPU for a rival; beyond it, its time is extrapolated
ONCE_SECONDS = 15.0
STEPS = 7  # leapfrog steps a draw that an extrapolation assumes
PAPER_ITERATIONS, PAPER_SEEDS = 20_000, range(3)


def judged(problem, mean, sd):
    """Error of the mean and of the spread."""
    ratio = sd / problem.sd
    z2 = float(np.mean(np.square((mean - problem.mean) / problem.sd)))
    return {"z2": z2, "sd_min": float(ratio.min()), "sd_max": float(ratio.max())}


def of_draws(problem, draws):
    flat = np.asarray(draws).reshape(-1, len(problem.mean))
    return judged(problem, flat.mean(axis=0), flat.std(axis=0, ddof=1))


def peak_gb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def laplace(problem):
    """The Gaussian at the mode, twice: the second time nothing is compiled."""
    seconds = []
    for _ in range(2):
        began = time.process_time()
        with jax.enable_x64(True):
            source = as_data_source(problem.rows, problem.model)
            found = laplace_approximation(
                problem.model, source, problems.start_of(problem.model, problem.rows)
            )
            mean, sd = found.mean, found.sd
        seconds.append(time.process_time() - began)
    yield {
        "cpu_with": seconds[0],
        "cpu": seconds[1],
        "note": f"{found.num_passes} passes",
        **judged(problem, mean, sd),
    }


def ours(problem):
    """The default preset. Of each size the first seed pays for compilation."""
    for size in problem.sizes:
        for seed in SEEDS:
            began = time.process_time()
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                fit = coremcmc.fit(
                    problem.model, problem.rows, size, preset="default", seed=seed, progress=False
                )
            seconds = time.process_time() - began
            row = {
                "M": size,
                "seed": seed,
                "cpu_with" if seed == 0 else "cpu": seconds,
                "residual": fit.certificate.residual_variance,
                "pareto_k": fit.certificate.pareto_k,
                "verdict": fit.certificate.verdict,
                "peak_gb": peak_gb(),
                "note": f"{fit.iteration} iterations, {fit.stopped}"
                + "".join(f"; warns: {w.message}"[:120] for w in caught),
                **of_draws(problem, fit.sampled_positions),
            }
            if seed == 0:  # once more, now compiled
                began = time.process_time()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    coremcmc.fit(
                        problem.model, problem.rows, size, preset="default", progress=False
                    )
                row["cpu"] = time.process_time() - began
            yield row


def _run_twice(sampler, seed, **options):
    """Draws of the first run, and CPU with compilation and, of a second run, without.

    A long run is not made twice: its time then counts compilation.
    """
    seconds = []
    for key in (seed, seed + 1000):
        began = time.process_time()
        sampler.run(jax.random.key(key), **options)
        samples = {name: np.asarray(x) for name, x in sorted(sampler.get_samples().items())}
        seconds.append(time.process_time() - began)
        if key == seed:
            found = np.concatenate([x.reshape(len(x), -1) for x in samples.values()], axis=1)
            if seconds[0] > ONCE_SECONDS:
                break
    return found, {"cpu_with": seconds[0], "cpu": seconds[-1]}


def _nuts(target, start, seed, dense_mass=True):
    """NumPyro's NUTS from a given start: draws, times, leapfrog steps a draw."""
    sampler = MCMC(
        NUTS(potential_fn=lambda p: -target(p), dense_mass=dense_mass),
        num_warmup=WARMUP,
        num_samples=DRAWS,
        progress_bar=False,
    )
    options = {"init_params": start, "extra_fields": ("num_steps",)}
    draws, seconds = _run_twice(sampler, seed, **options)
    return draws, seconds, float(np.mean(sampler.get_extra_fields()["num_steps"]))


def _target(model, rows, weights):
    return Target(
        model, model.prepare_rows(jax.tree.map(jnp.asarray, rows)), jnp.asarray(weights, float)
    )


def _mode(problem):
    source = as_data_source(problem.rows, problem.model)
    return laplace_approximation(
        problem.model, source, problems.start_of(problem.model, problem.rows)
    ).position


def subsample(problem):
    """Uniform rows, each of weight N/M, with NUTS started at the full-data mode (a gift)."""
    with jax.enable_x64(True):
        start = _mode(problem)
        for size in problem.sizes:
            for seed in SUBSAMPLE_SEEDS:
                rng = np.random.default_rng([seed, 77])
                chosen = rng.choice(problem.num_rows, size, replace=False)
                rows = {name: column[chosen] for name, column in problem.rows.items()}
                target = _target(problem.model, rows, np.full(size, problem.num_rows / size))
                draws, seconds, steps = _nuts(target, start, seed)
                yield {
                    "M": size,
                    "seed": seed,
                    **seconds,
                    "note": f"{steps:.1f} leapfrog steps a draw",
                    **of_draws(problem, draws),
                }


def nuts(problem):
    """NUTS on all rows, from the mode; where it takes too long, only what it would take."""
    with jax.enable_x64(True):
        start = _mode(problem)
        target = _target(problem.model, problem.rows, np.ones(problem.num_rows))
        gradient = jax.jit(jax.value_and_grad(lambda p, t: t(p)))
        jax.block_until_ready(gradient(start, target))
        began, count = time.process_time(), 5
        for _ in range(count):
            jax.block_until_ready(gradient(start, target))
        each = (time.process_time() - began) / count
        expected = each * STEPS * (WARMUP + DRAWS)
        if expected > MOST_SECONDS:
            yield {
                "cpu": expected,
                "note": f"not run; time EXTRAPOLATED: {WARMUP}+{DRAWS} draws of {STEPS} leapfrog "
                f"steps, {1e3 * each:.0f} ms a gradient",
            }
            return
        draws, seconds, steps = _nuts(target, start, 0)
        yield {
            "seed": 0,
            **seconds,
            "note": f"{WARMUP}+{DRAWS}, {steps:.1f} leapfrog steps a draw, "
            f"{1e3 * each:.1f} ms a gradient",
            **of_draws(problem, draws),
        }


def nuts_plain(problem):
    """NUTS on all rows as it comes: a diagonal mass matrix, started where the model says."""
    with jax.enable_x64(True):
        start = problems.start_of(problem.model, problem.rows)
        target = _target(problem.model, problem.rows, np.ones(problem.num_rows))
        draws, seconds, steps = _nuts(target, start, 0, dense_mass=False)
        yield {
            "seed": 0,
            **seconds,
            "note": f"{WARMUP}+{DRAWS}, {steps:.1f} leapfrog steps a draw",
            **of_draws(problem, draws),
        }


def _hmcecs_model(problem, size):
    """Return the regression in NumPyro's own words, a plate of ``size`` rows at a time."""
    rows, kind = problem.rows, type(problem.model)
    x = jnp.column_stack([jnp.ones(problem.num_rows), jnp.asarray(rows["x"], float)])
    y = jnp.asarray(rows["y"], float)

    def model():
        heavy = kind is coremcmc.LogisticRegression
        prior = dist.Cauchy(0.0, 1.0) if heavy else dist.Normal(0.0, 1.0)
        beta = numpyro.sample("beta", prior.expand([x.shape[1]]).to_event(1))
        if kind is coremcmc.LinearRegression:
            log_sigma2 = numpyro.sample("log_sigma2", dist.Normal(0.0, 1.0))
        with numpyro.plate("rows", len(y), subsample_size=size):
            eta = numpyro.subsample(x, event_dim=1) @ beta
            if kind is coremcmc.PoissonRegression:
                response = dist.Poisson(jax.nn.softplus(eta))
            elif kind is coremcmc.LogisticRegression:
                response = dist.Bernoulli(logits=eta)
            else:
                response = dist.Normal(eta, jnp.exp(0.5 * log_sigma2))
            numpyro.sample("y", response, obs=numpyro.subsample(y, event_dim=0))

    return model


def hmcecs(problem):
    """Energy-conserving subsampling with a Taylor proxy at the mode, 1,000 rows at a time."""
    with jax.enable_x64(True):
        mode = dict(_mode(problem))
        model = _hmcecs_model(problem, 1000)
        first = numpyro.infer.init_to_value(values=mode)
        kernel = HMCECS(
            NUTS(model, dense_mass=True, init_strategy=first),
            num_blocks=10,
            proxy=HMCECS.taylor_proxy(mode),
        )
        sampler = MCMC(kernel, num_warmup=WARMUP, num_samples=DRAWS, progress_bar=False)
        draws, seconds = _run_twice(sampler, 0)
        yield {
            "M": 1000,
            "seed": 0,
            **seconds,
            "note": f"{WARMUP}+{DRAWS}, Taylor proxy at the mode, 10 blocks",
            **of_draws(problem, draws),
        }


def paper(problem):
    """The paper's recipe, for a tenth of the paper's 200,000 iterations."""
    size = problem.sizes[0]
    coremcmc.fit(problem.model, problem.rows, size, preset="paper", num_iterations=100)
    for seed in PAPER_SEEDS:
        began = time.process_time()
        fit = coremcmc.fit(
            problem.model,
            problem.rows,
            size,
            preset="paper",
            seed=seed,
            num_iterations=PAPER_ITERATIONS,
            progress=False,
        )
        yield {
            "M": size,
            "seed": seed,
            "cpu": time.process_time() - began,
            "note": f"{PAPER_ITERATIONS:,} iterations",
            **of_draws(problem, fit.positions[len(fit.positions) // 2 :]),
        }


METHODS = {f.__name__: f for f in (laplace, ours, subsample, nuts, nuts_plain, hmcecs, paper)}
