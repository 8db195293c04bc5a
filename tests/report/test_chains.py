"""Which chain stands apart."""

import dataclasses

import numpy as np
import pytest

from coremcmc.report.chains import orange_chain, slowest_chains, standing_apart
from coremcmc.report.parameters import parameters_of
from tests.report.report_fits import empty_fit, make_fit


@pytest.mark.parametrize("apart", range(4))
def test_the_chain_that_ends_elsewhere_stands_apart(apart):
    chains = np.random.default_rng(0).standard_normal((4, 200))
    chains[apart, 100:] += 3.0
    chains[(apart + 1) % 4, :100] += 30.0  # which it has left behind
    assert standing_apart(chains) == apart
    assert orange_chain(chains) == "The one furthest from the rest is orange."


def test_of_one_chain_none_stands_apart_and_of_two_the_second():
    chains = np.random.default_rng(0).standard_normal((2, 50))
    assert standing_apart(chains[:1]) is None
    assert orange_chain(chains[:1]) == ""
    assert standing_apart(chains) == 1
    assert orange_chain(chains) == "One is orange."
    chains[1] = np.nan
    assert standing_apart(chains) is None


def test_the_slowest_parameter_is_drawn():
    fit = make_fit()
    for name in ("sigma", "beta"):  # which it is depends on the draws, not on the order
        changed = np.array(fit.sampled[name])
        changed[...] = np.cumsum(np.random.default_rng(0).standard_normal(changed.shape), axis=1)
        slow = dataclasses.replace(fit, sampled={**fit.sampled, name: changed})
        found = slowest_chains(parameters_of(slow, 10)[0])
        assert f'aria-label="Draws of {name}' in found.drawings[0]
    assert slowest_chains(parameters_of(empty_fit(), 10)[0]) is None
