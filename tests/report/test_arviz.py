"""Without ArviZ its base makes the same draws: what a user has who wants no plots."""

import sys

import numpy as np
import pytest

import coremcmc


@pytest.fixture(scope="module")
def fit():
    data = coremcmc.logistic_data(num_rows=300)
    return coremcmc.fit(
        coremcmc.LogisticRegression(), data, 20, preset="paper", hot_start=False, num_iterations=40
    )


@pytest.fixture
def tree(fit, monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz", None)  # importing it is an ImportError
    return fit.to_arviz()


def test_every_group_is_there(fit, tree):
    assert set(tree.children) == {"posterior", "sample_stats", "coreset", "observed_data"}
    np.testing.assert_array_equal(tree["posterior"]["beta"], fit.posterior["beta"])
    np.testing.assert_array_equal(tree["coreset"]["weight"], fit.coreset.weights)
    assert tree["posterior"].attrs["coreset_size"] == 20


def test_the_file_is_what_arviz_reads(fit, tree, tmp_path, monkeypatch):
    tree.to_netcdf(tmp_path / "posterior.nc")
    monkeypatch.undo()
    arviz = pytest.importorskip("arviz")
    read = arviz.from_netcdf(tmp_path / "posterior.nc")
    np.testing.assert_array_equal(read["posterior"]["beta"], fit.posterior["beta"])
    np.testing.assert_array_equal(read["coreset"]["row"], fit.coreset.indices)
