"""Descriptions are the same for the same thing, in any process, and differ for another."""

import functools
import subprocess
import sys

import jax
import numpy as np
import pytest

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


@pytest.mark.parametrize(
    "make",
    [
        scaled,
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
