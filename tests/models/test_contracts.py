"""Every public model keeps the contract: a class for each, by the model's name."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import coremcmc
from coremcmc import models
from coremcmc.models.families import FAMILIES
from tests.contracts.model import ModelContract

N, P = 12, 3
rng = np.random.default_rng(0)
X = rng.normal(size=(N, P)).astype(np.float32)
RESPONSES = {
    "real": rng.normal(size=N),
    "binary": rng.integers(0, 2, N).astype(np.int8),
    "count": rng.poisson(2.0, N).astype(np.int16),
}


class Regression(ModelContract):
    """Rows ``{"x", "y"}``."""

    response = "real"

    def wrong_rows(self, rows):
        wrong = {
            "a vector of features": {**rows, "x": rows["x"][:, 0]},
            "no features": {**rows, "x": rows["x"][:, :0]},
            "a matrix of responses": {**rows, "y": rows["y"][:, None]},
        }
        if rows["y"].dtype != float:
            wrong["responses of another kind"] = {**rows, "y": rows["y"] - 0.5}
        return wrong


class TestLinearRegression(Regression):
    @staticmethod
    def make(case=None):
        return coremcmc.LinearRegression(), {"x": X, "y": RESPONSES["real"]}


class TestLogisticRegression(Regression):
    @staticmethod
    def make(case=None):
        return coremcmc.LogisticRegression(intercept=False), {"x": X, "y": RESPONSES["binary"]}


class TestPoissonRegression(Regression):
    @staticmethod
    def make(case=None):
        return coremcmc.PoissonRegression(), {"x": X, "y": RESPONSES["count"]}


class TestSparseRegression(Regression):
    @staticmethod
    def make(case=None):
        return coremcmc.SparseRegression(), {"x": X, "y": RESPONSES["real"]}


GLMS = {
    f"{family}, {link.name}": (family, link.name)
    for family, parts in FAMILIES.items()
    for link in parts.links
}


class TestGLM(Regression):
    @staticmethod
    def make(case=None):
        family, link = GLMS[case]
        model = coremcmc.GLM(family, link=link, priors={"beta": "normal(1.5)"})
        return model, {"x": X, "y": RESPONSES[FAMILIES[family].response.name]}

    @pytest.fixture(params=GLMS)
    def case(self, request):
        return self.make(request.param)


class TestFormulaModel(Regression):
    prepares_once = True  # it standardizes

    @staticmethod
    def make(case=None):
        table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=RESPONSES["real"])
        return coremcmc.from_formula("y ~ a + b * c", table, family="student_t")

    def wrong_rows(self, rows):
        return {**super().wrong_rows(rows), "a column less": {**rows, "x": rows["x"][:, 1:]}}


class TestBradleyTerry(ModelContract):
    @staticmethod
    def make(case=None):
        teams = {"home": np.arange(N) % 4, "away": (np.arange(N) + 1 + np.arange(N) // 6) % 4}
        return coremcmc.BradleyTerry(4), {**teams, "y": RESPONSES["binary"]}

    def wrong_rows(self, rows):
        return {
            "a team too many": {**rows, "home": rows["home"] + 1},
            "teams that are no integers": {**rows, "away": rows["away"] + 0.0},
            "a matrix of teams": {**rows, "home": rows["home"][:, None]},
            "an outcome that is neither": {**rows, "y": rows["y"] + 1},
        }


class TestGaussianLocation(ModelContract):
    @staticmethod
    def make(case=None):
        return coremcmc.GaussianLocation(), {"x": X}

    def wrong_rows(self, rows):
        return {"a vector": {"x": rows["x"][:, 0]}}


def decay_prior(position):
    return -0.5 * jnp.sum(position["log_rate"] ** 2)


def decay(position, rows):
    return -0.5 * (rows["y"] - jnp.exp(-jnp.exp(position["log_rate"]) * rows["t"])) ** 2


def decay_start(key):
    return {"log_rate": 0.5 * jax.random.normal(key, ())}


class TestFunctionModel(ModelContract):
    @staticmethod
    def make(case=None):
        model = coremcmc.FunctionModel(decay_prior, decay, decay_start)
        return model, {"t": np.linspace(0.0, 3.0, N, dtype=np.float32), "y": RESPONSES["real"]}


def test_no_public_model_is_without_a_class():
    tested = {name.removeprefix("Test") for name in globals() if name.startswith("Test")}
    assert set(models.__all__) <= tested
