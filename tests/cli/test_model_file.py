"""A model of the user's own, from a Python file."""

import textwrap

import numpy as np
import pandas
import pytest

import coremcmc
from coremcmc.cli.model_file import model_from_file
from coremcmc.models.names import from_plain, to_plain

TABLE = pandas.DataFrame({"y": [0.5, 1.5, 2.5], "group": ["a", "b", "a"], "flag": [True] * 3})
GOOD = """
    import jax.numpy as jnp
    import coremcmc
    from helper import SCALE

    free = coremcmc.FunctionModel(
        lambda p: -0.5 * p["mu"] ** 2 / SCALE,
        lambda p, rows: -0.5 * (rows["y"] - p["mu"]) ** 2,
        lambda key: {"mu": jnp.zeros(())},
    )
    fixed = coremcmc.LogisticRegression()
    number = 3

    def made(table):
        return fixed, {"x": table[["y"]].to_numpy(), "y": table["flag"].to_numpy()}

    def wrong(table):
        return fixed

    def fails(table):
        return table["nowhere"]
"""


@pytest.fixture
def file(tmp_path):
    (tmp_path / "helper.py").write_text("SCALE = 10.0\n")
    path = tmp_path / "mine.py"
    path.write_text(textwrap.dedent(GOOD))
    return path


def test_a_model_gets_the_columns_of_numbers(file):
    model, data = model_from_file(f"{file}:free", TABLE)
    assert isinstance(model, coremcmc.FunctionModel)
    assert set(data) == {"y", "flag"}
    np.testing.assert_array_equal(data["y"], TABLE["y"])


def test_a_model_that_lists_its_fields_gets_those(file):
    table = pandas.DataFrame({"x": [1.0], "y": [0], "z": [2]})
    assert set(model_from_file(f"{file}:fixed", table)[1]) == {"x", "y"}


def test_a_matrix_is_put_together_from_its_columns(file):
    table = pandas.DataFrame({"x_1": [1.0, 2.0], "x_0": [3.0, 4.0], "y": [0, 1], "x_3": [0, 0]})
    data = model_from_file(f"{file}:fixed", table)[1]
    np.testing.assert_array_equal(data["x"], [[3.0, 1.0], [4.0, 2.0]])


def test_a_function_makes_model_and_data_of_the_table(file):
    model, data = model_from_file(f"{file}:made", TABLE)
    assert model == coremcmc.LogisticRegression()
    assert data["x"].shape == (3, 1)


def test_the_identity_is_the_same_when_loaded_again(file):
    first, second = (model_from_file(f"{file}:free", TABLE)[0].describe() for _ in range(2))
    assert first == second


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nix", r"defines no 'nix'; it defines free, fixed, made, wrong, fails"),
        ("number", "neither a model"),
        ("wrong", r"must return \(model, data\), but returned LogisticRegression"),
        ("fails", "line 21: KeyError: 'nowhere'"),
        ("fixed", "reads the column.s. x, which the data lack; theirs are y, group, flag"),
        ("not a name", "must be file.py:name"),
    ],
)
def test_what_is_wrong_is_said(file, name, message):
    with pytest.raises(ValueError, match=message):
        model_from_file(f"{file}:{name}", TABLE)


def test_a_file_that_is_missing_or_broken_is_named(tmp_path):
    with pytest.raises(ValueError, match="there is no file"):
        model_from_file(f"{tmp_path}/none.py:model", TABLE)
    broken = tmp_path / "broken.py"
    broken.write_text("x = 1\nmodel = (\n")
    with pytest.raises(ValueError, match="line 2: SyntaxError"):
        model_from_file(f"{broken}:model", TABLE)
    other = tmp_path / "model.txt"
    other.write_text("")
    with pytest.raises(ValueError, match=r"must end in \.py"):
        model_from_file(f"{other}:model", TABLE)


# -- models as plain values -----------------------------------------------------------------------


def test_a_model_of_the_package_survives_json():
    import json

    for model in (
        coremcmc.LogisticRegression(intercept=False),
        coremcmc.BradleyTerry(num_teams=4),
        coremcmc.GLM("student_t", priors={"beta": "normal(1.5)", "sigma": "exponential(2)"}),
    ):
        again = from_plain(json.loads(json.dumps(to_plain(model))))
        assert again == model
        assert again.describe() == model.describe()


def test_a_users_model_is_not_stored_and_foreign_classes_are_not_made(file):
    assert to_plain(model_from_file(f"{file}:free", TABLE)[0]) is None
    assert from_plain(None) is None
    for name in (
        "os:system",
        "coremcmc.fitting.checkpoint:write_archive",
        "write_archive",
        "FitCommand",
    ):
        with pytest.raises((ValueError, ImportError)):
            from_plain({"class": name, "values": {}})
