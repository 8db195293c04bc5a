"""Shared fixtures. Every test runs in 64-bit mode unless it leaves it."""

import gc
from pathlib import Path

import jax
import numpy as np
import pytest

SHARED_DATA = Path(__file__).parents[2] / "shared" / "data"


@pytest.fixture(autouse=True)
def float64():
    with jax.enable_x64(True):
        yield


@pytest.fixture(autouse=True, scope="module")
def forget_compiled_programs():
    """Every compiled program holds memory maps, of which Linux gives a process 65,530 at most.

    Past that, the next compilation ends in a segmentation fault.
    """
    yield
    jax.clear_caches()
    gc.collect()


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
