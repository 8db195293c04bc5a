"""Columns of the wrong kind are refused by name, with what was found."""

import numpy as np
import pytest

from coremcmc import (
    BradleyTerry,
    GaussianLocation,
    LinearRegression,
    LogisticRegression,
    PoissonRegression,
    SparseRegression,
)
from coremcmc.models.row_checks import (
    require_binary,
    require_counts,
    require_indices,
    require_matrix,
)

X = np.zeros((4, 2))
MATRIX_MODELS = [
    LinearRegression(),
    LogisticRegression(),
    PoissonRegression(),
    SparseRegression(),
    GaussianLocation(),
]
RESPONSE_MODELS = MATRIX_MODELS[:-1]


def name_of(model):
    return type(model).__name__


@pytest.mark.parametrize(
    ("values", "found"),
    [
        (np.zeros(4), r"\(4,\)"),
        (np.zeros((4, 0)), r"\(4, 0\)"),
        (np.zeros((4, 2, 1)), r"\(4, 2, 1\)"),
    ],
)
@pytest.mark.parametrize("model", MATRIX_MODELS, ids=name_of)
def test_features_must_be_a_matrix(model, values, found):
    with pytest.raises(ValueError, match=rf"data\['x'\].*matrix.*{found}"):
        model.check_rows({"x": values, "y": np.zeros(4)})


@pytest.mark.parametrize("model", RESPONSE_MODELS, ids=name_of)
def test_responses_must_be_a_vector(model):
    with pytest.raises(ValueError, match=r"data\['y'\].*\(4, 1\)"):
        model.check_rows({"x": X, "y": np.zeros((4, 1))})


@pytest.mark.parametrize("column", ["home", "away", "y"])
def test_columns_of_paired_comparisons_must_be_vectors(column):
    rows = {name: np.zeros(4, int) for name in ("home", "away", "y")}
    rows[column] = np.zeros((4, 1), int)
    with pytest.raises(ValueError, match=rf"data\['{column}'\].*\(4, 1\)"):
        BradleyTerry(3).check_rows(rows)


@pytest.mark.parametrize(
    ("y", "found"),
    [
        (np.array([0, 1, 2, 2]), r"2 at row 2 \(2 such rows\)"),
        (np.array([-1, 1, -1, 1]), r"-1 at row 0 \(2 such rows\)"),
        (np.array([0.0, 0.5, 1.0, 1.0]), r"0\.5 at row 1 \(1 such rows\)"),
    ],
)
@pytest.mark.parametrize(
    ("model", "rows"),
    [
        (LogisticRegression(), {"x": X}),
        (BradleyTerry(3), {"home": np.zeros(4, int), "away": np.ones(4, int)}),
    ],
    ids=["LogisticRegression", "BradleyTerry"],
)
def test_labels_must_be_zero_or_one(model, rows, y, found):
    with pytest.raises(ValueError, match=rf"data\['y'\].*0 and 1.*{found}"):
        model.check_rows({**rows, "y": y})


@pytest.mark.parametrize(
    ("y", "found"),
    [
        (np.array([0, 3, -2, -1]), r"-2 at row 2 \(2 such rows\)"),
        (np.array([0.0, 3.0, 7.0, 1.5]), r"1\.5 at row 3 \(1 such rows\)"),
    ],
)
def test_counts_must_be_whole_and_not_negative(y, found):
    with pytest.raises(ValueError, match=rf"data\['y'\].*counts.*{found}"):
        PoissonRegression().check_rows({"x": X, "y": y})


@pytest.mark.parametrize("column", ["home", "away"])
@pytest.mark.parametrize(
    ("values", "found"),
    [
        (np.array([0, 1, 3, 2]), r"3 at row 2 \(1 such rows\)"),
        (np.array([0, -1, 2, 2]), r"-1 at row 1 \(1 such rows\)"),
        (np.array([0.0, 1.0, 2.0, 2.0]), "float64"),
        (np.array([True, False, True, True]), "bool"),
    ],
)
def test_teams_must_exist(column, values, found):
    rows = {"home": np.zeros(4, int), "away": np.ones(4, int), "y": np.ones(4, int)}
    with pytest.raises(ValueError, match=rf"data\['{column}'\].*integers 0 to 2.*{found}"):
        BradleyTerry(3).check_rows({**rows, column: values})


def test_messages_name_the_column_they_were_given():
    bad = np.array([0, 0, 1_000_000])
    for check in (lambda n: require_binary(n, bad), lambda n: require_counts(n, -bad)):
        with pytest.raises(ValueError, match=r"data\['wins'\].*1000000 at row 2 "):
            check("wins")
    with pytest.raises(ValueError, match=r"data\['wins'\]"):
        require_matrix("wins", bad)
    with pytest.raises(ValueError, match=r"data\['wins'\]"):
        require_indices("wins", bad, 5)


def test_row_numbers_have_thousands_separators():
    y = np.zeros(123_457, np.int8)
    y[123_456] = 2
    with pytest.raises(ValueError, match="at row 123,456 "):
        require_binary("y", y)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int64, np.float32, np.float64])
def test_right_columns_of_any_numeric_dtype_pass(dtype):
    y = np.array([0, 1, 1, 0]).astype(dtype)
    results = [model.check_rows({"x": X, "y": y}) for model in RESPONSE_MODELS]
    require_indices("home", np.array([0, 2], np.uint8), 3)
    assert results == [None] * len(RESPONSE_MODELS)
