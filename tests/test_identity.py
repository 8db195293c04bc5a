"""Descriptions are the same for the same thing, in any process, and differ for another."""

import functools
import subprocess
import sys

import jax
import numpy as np
import pytest

import coremcmc
from coremcmc.identity import describe

SCRIPT = """
import functools, jax
from coremcmc.identity import describe
def scaled(factor):
    return lambda p: p * factor if p not in {"a", "b", "c", "d"} else factor
class Plain:
    def __init__(self, x): self.x, self.itself = x, self
    def method(self, p): return p * self.x
f = scaled(2.0)
for value in (f, jax.jit(f), functools.partial(f, 1), Plain(3), Plain(3).method, [f, {"g": f}]):
    print(describe(value))
"""


def test_the_same_in_every_process():
    outputs = [
        subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert outputs[0].stdout == outputs[1].stdout
    assert len(outputs[0].stdout.splitlines()) == 6
    assert " at 0x" not in outputs[0].stdout


def scaled(factor):
    return lambda p: p * factor


class Plain:
    def __init__(self, x):
        self.x = x

    def method(self, p):
        return p * self.x


READS_GLOBALS = """
import math
def helper(p): return [scale * x for x in p] if p else again(p)
def again(p): return helper(p) or first(p)
def first(p): return math.fsum(helper(p))
"""


def reads_global(value):
    """A function whose helper's inner code reads a global, as in a notebook."""
    namespace = {"__name__": "notebook", "scale": value, "unread": object()}
    exec(READS_GLOBALS, namespace)
    return namespace["first"]


@pytest.mark.parametrize(
    "make",
    [
        scaled,
        reads_global,
        lambda x: reads_global(np.full(3, x)),
        lambda x: reads_global({"a": (x, "b")}),
        lambda x: jax.jit(reads_global(x)),
        lambda x: jax.jit(scaled(x)),
        lambda x: functools.partial(max, x),
        lambda x: functools.partial(scaled(x), 1),
        Plain,
        lambda x: Plain(x).method,
        lambda x: np.full(3, x),
        lambda x: {"f": [scaled(x)]},
        lambda x: frozenset({x, "y"}),
    ],
)
def test_other_constants_are_told_apart(make):
    assert describe(make(1.0)) == describe(make(1.0))
    assert describe(make(1.0)) != describe(make(2.0))


def test_other_code_is_told_apart():
    assert describe(lambda p: p + 1) != describe(lambda p: p - 1)


def test_what_refers_to_itself_has_an_end():
    thing = Plain(None)
    thing.x = lambda: thing
    assert "Plain" in describe(thing)


def test_a_fit_sees_a_global_that_was_changed():
    """The prior's scale is a global: the same functions, and so the same model to Python."""
    namespace = {"__name__": "notebook", "jnp": jax.numpy, "jax": jax, "sd": 1e-3}
    exec(
        "def logprior(p): return -0.5 * (p['m'] / sd) ** 2\n"
        "def loglikelihood(p, rows): return -0.5 * (rows['y'] - p['m']) ** 2\n"
        "def initial(key): return {'m': 0.1 * jax.random.normal(key)}",
        namespace,
    )
    model = coremcmc.FunctionModel(
        *(namespace[n] for n in ("logprior", "loglikelihood", "initial"))
    )
    data = {"y": 3.0 + np.random.default_rng(0).standard_normal(400)}

    def mean():
        options = {"num_iterations": 200, "num_draws": 200, "progress": False}
        return coremcmc.fit(model, data, 20, **options).posterior["m"].mean()

    assert abs(mean()) < 0.01
    namespace["sd"] = 100.0
    assert abs(mean() - 3.0) < 0.5


def test_our_own_classes_and_functions_are_named_without_their_modules():
    from coremcmc.models.special import softplus
    from coremcmc.posterior.derivatives import prepared

    class Ours:
        """As if it were of the package."""

    Ours.__module__, Ours.__qualname__ = "coremcmc.some.room", "Ours"
    assert describe(Ours()).startswith("Ours{")
    Ours.__module__ = "coremcmc_model_mine"  # a user's file
    assert describe(Ours()).startswith("coremcmc_model_mine.Ours{")
    for function in (softplus, prepared):
        assert "coremcmc." not in describe(function)


def test_models_are_known_by_their_names_wherever_their_modules_are():
    from coremcmc.models.names import NAMED

    assert set(coremcmc.models.__all__) <= set(NAMED)
    for name, kind in NAMED.items():
        assert kind.__name__ == name
        assert kind.__module__.startswith("coremcmc.models.")
