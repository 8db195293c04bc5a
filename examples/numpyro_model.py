"""Some people never see a doctor: a zero-inflated Poisson regression, written in NumPyro.

Who never goes, and how often the others go, depend on different things. The model is NumPyro's
own: ``numpyro.infer.MCMC`` would take it as it is.
"""
# ruff: noqa: T201

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from example_data import doctor_visits, parsed, some_rows

import coremcmc

FEATURES = ["lncoins", "idp", "lpi", "fmde", "physlm", "disea", "hlthg", "hlthf", "hlthp"]


def visits(x, y=None):
    """Probability of never going, and the logarithm of the rate, are linear in the features."""
    num_features = x.shape[1]
    normal = dist.Normal(0.0, 1.0).expand([num_features]).to_event(1)
    never = numpyro.sample("never", dist.Normal(0.0, 2.5)) + x @ numpyro.sample("on_never", normal)
    rate = numpyro.sample("rate", dist.Normal(0.0, 2.5)) + x @ numpyro.sample("on_rate", normal)
    with numpyro.plate("people", x.shape[0]):
        numpyro.sample(
            "y",
            dist.ZeroInflatedDistribution(dist.Poisson(jnp.exp(rate)), gate_logits=never),
            obs=y,
        )


def main(arguments: list[str] | None = None) -> coremcmc.Fit:
    """Fit, and show which features matter."""
    options = parsed(__doc__, arguments)
    table = some_rows(doctor_visits(), options.rows)
    x = table[FEATURES].to_numpy()
    x = (x - x.mean(axis=0)) / x.std(axis=0)

    model, data = coremcmc.from_numpyro(visits, {"x": x, "y": table["mdvis"].to_numpy(int)})
    fit = coremcmc.fit(model, data, options.coreset_size)
    print(fit.summary())
    return fit


if __name__ == "__main__":
    main()
