"""Shared fixtures. Every test runs in 64-bit mode unless it leaves it."""

from pathlib import Path

import jax
import numpy as np
import pytest

SHARED_DATA = Path(__file__).parents[2] / "shared" / "data"


@pytest.fixture(autouse=True)
def float64():
    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="session")
def shared_data():
    """The folder of real data sets that lies beside a development checkout."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"no real data sets at {SHARED_DATA}")
    return SHARED_DATA


@pytest.fixture(scope="session")
def bikes(shared_data):
    """The paper's Poisson data: 15,641 hours of bike rentals."""
    with np.load(shared_data / "bikes.npz") as file:
        return {"x": file["X"], "y": file["y"]}
