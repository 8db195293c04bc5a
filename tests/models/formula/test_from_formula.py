"""Formulas against patsy and statsmodels, and what is refused or told of, each in one line."""

import pickle
import subprocess
import sys
import tracemalloc
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import patsy
import pytest
import statsmodels.api as sm
from statsmodels.discrete.discrete_model import NegativeBinomial

import coremcmc
from coremcmc import LinearPredictorModel, from_formula
from coremcmc.data.memory import MemoryData
from coremcmc.models.formula import columns as standardize
from coremcmc.models.formula.collinearity import Dependence, dependent_columns
from coremcmc.posterior.mode import laplace_approximation

N = 3_000
WIDE = {"priors": {"beta": "normal(1e5)", "Intercept": "normal(1e5)"}}


def make_table(num_rows=N, seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "hour": rng.integers(5, 24, num_rows),
            "dist": rng.lognormal(6.5, 0.8, num_rows),
            "temp": rng.normal(55.0, 18.0, num_rows),
            "origin": rng.choice(["EWR", "JFK", "LGA"], num_rows, p=[0.5, 0.3, 0.2]),
            "month": rng.integers(1, 5, num_rows),
            "is_rain": rng.random(num_rows) < 0.2,
        }
    )
    jfk, lga = table["origin"] == "JFK", table["origin"] == "LGA"
    eta = (
        -1.0
        + 0.08 * (table["hour"] - 13)
        - 0.3 * (np.log(table["dist"]) - 6.5)
        + 0.5 * jfk
        - 0.4 * lga
        + 0.02 * jfk * (table["temp"] - 55)
        + 0.6 * table["is_rain"]
    )
    table["delay"] = 30.0 + 12.0 * eta + 8.0 * rng.normal(size=num_rows)
    table["is_late"] = rng.random(num_rows) < 1 / (1 + np.exp(-eta))
    table["late"] = np.where(table["is_late"], "yes", "no")
    table["count"] = rng.poisson(np.exp(eta + 1.0))
    table["bursts"] = rng.poisson(np.exp(eta + 1.0) * rng.gamma(2.0, 0.5, num_rows))
    return table


TABLE = make_table()
RICH = "hour + log(dist) + C(origin) * temp + is_rain + C(month)"


def error_of(*arguments, **options):
    """The message, which is one line."""
    with pytest.raises(ValueError, match=r".") as caught:
        from_formula(*arguments, **options)
    message = str(caught.value)
    assert "\n" not in message
    assert "\x1b" not in message
    return message


def warning_of(*arguments, **options):
    with pytest.warns(UserWarning, match=r".") as caught:
        found = from_formula(*arguments, **options)
    return found, " ".join(str(warning.message) for warning in caught)


def mode(problem):
    """Coefficients at the posterior mode, on the user's scale."""
    model, data = problem
    rows = model.prepare_rows(jax.tree.map(lambda x: jnp.asarray(x[:50]), data))
    start = model.initial_position(jax.random.key(0), rows)
    found = laplace_approximation(model, MemoryData(data), start)
    return {name: float(value) for name, value in model.constrain_fn(found.position).items()}


# -- designs --------------------------------------------------------------------------------------


def same_name(name):
    """Terms of an interaction in one order: patsy and formulaic differ there."""
    name = name.replace("is_rain[T.True]", "is_rain").replace(", ", ",")
    return ":".join(sorted(name.split(":")))


@pytest.mark.parametrize(
    "right",
    [
        "hour + temp",
        RICH,
        "origin",
        "C(origin):C(month)",
        "0 + C(origin) + hour",
        "hour - 1",
        "C(origin):temp",
        "(hour + temp + origin)**2",
        "np.log(dist) + I(temp**2) + np.where(hour > 12, 1, 0)",
        "center(temp) + scale(dist)",
        "bs(temp, df=5)",
        "I(temp - temp.mean())",
        "1",
    ],
)
def test_designs_are_those_of_patsy(right, monkeypatch):
    """In many small blocks: what depends on all rows is the same all the same."""
    monkeypatch.setattr(sys.modules[from_formula.__module__], "_BLOCK_ROWS", 700)
    model, data = from_formula(f"delay ~ {right}", TABLE, family="gaussian")
    theirs = patsy.dmatrix(right.replace("log(", "np.log(").replace("np.np.", "np."), TABLE)
    names = [same_name(n.replace("np.log", "log")) for n in theirs.design_info.column_names]
    ours = np.asarray(data["x"])
    if model.glm.intercept:
        ours = np.column_stack([np.ones(N), ours])
    assert ours.shape == theirs.shape
    scale = np.abs(np.asarray(theirs)).max(axis=0)
    for j, name in enumerate(model.coefficient_names):
        wanted = same_name(name.replace("np.log", "log"))
        if wanted in names and "bs(" not in name:
            theirs_j = np.asarray(theirs)[:, names.index(wanted)]
        else:  # a spline's columns are numbered from 1, not from 0
            theirs_j = np.asarray(theirs)[:, j]
        # patsy divides by the sd with n, formulaic by that with n − 1.
        rtol = 1e-3 if "scale(" in name else 1e-10
        np.testing.assert_allclose(ours[:, j], theirs_j, rtol=rtol, atol=1e-10 * scale.max())


def test_blocks_make_no_difference(monkeypatch):
    right = "poly(temp, 2) + bs(dist, df=4) + scale(hour) + C(month)"
    whole = from_formula(f"delay ~ {right}", TABLE, family="gaussian")
    monkeypatch.setattr(sys.modules[from_formula.__module__], "_BLOCK_ROWS", 333)
    monkeypatch.setattr(standardize, "_BLOCK_ENTRIES", 4_000)
    sorted_table = TABLE.sort_values("month", kind="stable")  # a level a block
    parts = from_formula(f"delay ~ {right}", sorted_table, family="gaussian")
    order = sorted_table.index.to_numpy()
    assert whole.model.names == parts.model.names
    np.testing.assert_allclose(parts.data["x"], whole.data["x"][order], rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(parts.model.scale, whole.model.scale, rtol=1e-3)


def test_a_level_that_only_the_last_rows_have_is_a_column():
    table = pd.DataFrame({"y": np.arange(10.0) ** 2, "g": list("aaaaaaabbc")})
    model, data = from_formula("y ~ g", table, family="gaussian")
    assert model.names == ("g[T.b]", "g[T.c]")
    np.testing.assert_array_equal(data["x"].sum(axis=0), [2, 1])


def test_small_integers_do_not_wrap_around():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 200, (2, 500))
    small = {"y": rng.normal(size=500), "a": a.astype(np.uint8), "b": b.astype(np.uint8)}
    formula = "y ~ a:b + I(a - b) + I(a * b * 2)"
    with pytest.warns(UserWarning, match="linear combinations"):
        _, data = from_formula(formula, small, family="gaussian")
    products = [a - b, 2 * a * b, a * b]
    expected = np.sort(np.column_stack(products), axis=1)
    np.testing.assert_array_equal(np.sort(data["x"], axis=1), expected)


def test_levels_that_no_row_has_are_no_columns():
    table = TABLE.assign(origin=pd.Categorical(TABLE["origin"], ["LGA", "EWR", "BOS", "JFK"]))
    model, _ = from_formula("delay ~ origin", table, family="gaussian")
    assert model.names == ("origin[T.EWR]", "origin[T.JFK]")


def test_the_peak_of_memory_is_near_one_copy_of_the_design():
    rng = np.random.default_rng(1)
    table = pd.DataFrame(rng.normal(size=(300_000, 20)), columns=[f"x{i}" for i in range(20)])
    table["g"] = rng.integers(0, 20, len(table))
    right = " + ".join(f"x{i}" for i in range(1, 20)) + " + C(g)"
    from_formula(f"x0 ~ {right}", table.head(100), family="gaussian")  # imports
    tracemalloc.start()
    model, data = from_formula(f"x0 ~ {right}", table, family="gaussian")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert data["x"].nbytes > 90e6
    assert peak < 1.5 * data["x"].nbytes
    assert data["x"].ctypes.data % 64 == 0
    assert len(model.names) == data["x"].shape[1]


# -- the user's scale -----------------------------------------------------------------------------


def maximum_likelihood(right, response, fit):
    design = patsy.dmatrix(right.replace("log(", "np.log("), TABLE, return_type="dataframe")
    design.columns = [same_name(name.replace("np.log", "log")) for name in design.columns]
    found = fit(TABLE[response].astype(float).to_numpy(), design)
    return dict(found.params), dict(found.bse)


CASES = {
    "gaussian": ("delay", "gaussian", lambda y, x: sm.OLS(y, x).fit()),
    "logistic": ("is_late", "logistic", lambda y, x: sm.Logit(y, x).fit(disp=0)),
    "probit": ("is_late", "probit", lambda y, x: sm.Probit(y, x).fit(disp=0)),
    "poisson": ("count", "poisson", lambda y, x: sm.Poisson(y, x).fit(disp=0, method="newton")),
    "negative_binomial": (
        "bursts",
        "negative_binomial",
        lambda y, x: NegativeBinomial(y, x).fit(disp=0, maxiter=500),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_mode_under_wide_priors_is_the_estimate_of_statsmodels(name):
    response, family, fit = CASES[name]
    problem = from_formula(f"{response} ~ {RICH}", TABLE, family=family, **WIDE)
    ours = {same_name(k): v for k, v in mode(problem).items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs, errors = maximum_likelihood(RICH, response, fit)
    dispersion = theirs.pop("alpha", None)
    assert set(theirs) == set(ours) - {"sigma", "phi"}
    for coefficient, value in theirs.items():
        # The prior of a scale moves the mode by a part of 1/N.
        assert abs(ours[coefficient] - value) < 2e-3 * errors[coefficient], coefficient
    if name == "gaussian":
        design = np.column_stack([np.ones(N), problem.data["x"]])
        y = TABLE["delay"].to_numpy()
        rest = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
        assert ours["sigma"] == pytest.approx(np.sqrt(rest @ rest / (N - 1)), rel=1e-3)
    if dispersion is not None:
        assert ours["phi"] == pytest.approx(1 / dispersion, rel=5e-3)


def test_without_an_intercept_nothing_is_centred():
    problem = from_formula("delay ~ 0 + C(origin) + hour", TABLE, family="gaussian", **WIDE)
    assert set(problem.model.location) == {0.0}
    assert problem.model.response_location == 0.0
    theirs = sm.OLS.from_formula("delay ~ 0 + C(origin) + hour", TABLE).fit()
    found = mode(problem)
    assert "Intercept" not in found
    for name, value in theirs.params.items():
        assert found[name] == pytest.approx(value, rel=1e-5)


def test_the_loglikelihood_is_that_of_the_users_own_response():
    model, data = from_formula("delay ~ hour", TABLE, family="gaussian")
    rows = model.prepare_rows(jax.tree.map(jnp.asarray, data))
    position = {"beta": jnp.asarray([0.3, -0.2]), "log_sigma": jnp.asarray(-0.1)}
    named = model.constrain_fn(position)
    mean = named["Intercept"] + named["hour"] * TABLE["hour"].to_numpy()
    expected = sm.stats.stattools.stats.norm(mean, named["sigma"]).logpdf(TABLE["delay"])
    np.testing.assert_allclose(model.loglikelihood_fn(position, rows), expected, rtol=1e-9)


def test_scales_are_what_a_prior_should_speak_of():
    right = "temp + is_rain + origin + temp:origin"
    model, _ = from_formula(f"delay ~ {right}", TABLE, family="gaussian")
    scale = dict(zip(model.names, model.scale, strict=True))
    assert scale["temp"] == pytest.approx(TABLE["temp"].std(), rel=1e-3)
    assert scale["is_rain"] == scale["origin[T.JFK]"] == 1.0
    at_jfk = TABLE["temp"][TABLE["origin"] == "JFK"]
    assert scale["temp:origin[T.JFK]"] == pytest.approx(at_jfk.std(), rel=1e-2)
    assert model.response_scale == pytest.approx(TABLE["delay"].std(), rel=1e-3)
    location = dict(zip(model.names, model.location, strict=True))
    assert location["temp"] == pytest.approx(TABLE["temp"].mean(), abs=1e-2)
    logistic, _ = from_formula("is_late ~ temp", TABLE, family="logistic")
    assert (logistic.response_location, logistic.response_scale) == (0.0, 1.0)


def test_units_make_no_difference():
    """The posterior of a rescaled column is the rescaled posterior, prior included."""
    tight = {"priors": {"beta": "normal(0.1)", "Intercept": "normal(0.5)"}}
    metres = TABLE.assign(dist=1000.0 * TABLE["dist"], delay=60.0 * TABLE["delay"])
    here = mode(from_formula("delay ~ dist + hour", TABLE, family="gaussian", **tight))
    there = mode(from_formula("delay ~ dist + hour", metres, family="gaussian", **tight))
    assert there["dist"] == pytest.approx(0.06 * here["dist"], rel=1e-3)
    assert there["hour"] == pytest.approx(60.0 * here["hour"], rel=1e-3)
    assert there["sigma"] == pytest.approx(60.0 * here["sigma"], rel=1e-3)


# -- what it is, to the rest of the package -------------------------------------------------------


def test_the_model_is_fast_hashable_and_keeps_its_name():
    problem = from_formula(
        f"is_late ~ {RICH}", TABLE, family="logistic", priors={"beta": "cauchy(1)"}
    )
    model, data = problem
    assert isinstance(model, LinearPredictorModel)
    assert model.has_independent_prior
    again = pickle.loads(pickle.dumps(problem))
    assert again.model == model
    assert hash(again.model) == hash(model)
    np.testing.assert_array_equal(again.rows, np.arange(N))
    np.testing.assert_array_equal(again.data["x"], data["x"])
    assert data["y"].dtype == np.int8
    other, _ = from_formula(f"is_late ~ {RICH}", TABLE.head(2_000), family="logistic")
    assert len({model.describe(), other.describe(), again.model.describe()}) == 2
    assert list(model.constrain_fn({"beta": jnp.zeros(len(model.names) + 1)}))[:2] == [
        "Intercept",
        "hour",
    ]
    assert model.check_rows(data) is None
    with pytest.raises(ValueError, match="a column for each of"):
        model.check_rows({"x": data["x"][:, 1:], "y": data["y"]})


def test_the_description_is_the_same_in_another_process(tmp_path):
    TABLE.to_parquet(tmp_path / "t.parquet")
    code = (
        "from coremcmc import from_formula;"
        f"print(from_formula('delay ~ {RICH}', {str(tmp_path / 't.parquet')!r}, "
        "family='student_t').model.describe())"
    )
    there = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    here = from_formula(f"delay ~ {RICH}", TABLE, family="student_t").model.describe()
    assert there.stdout.strip() == here


def test_a_column_named_like_a_parameter_keeps_its_name():
    table = TABLE.rename(columns={"hour": "sigma"})
    found = mode(from_formula("delay ~ sigma", table, family="gaussian"))
    assert list(found) == ["Intercept", "sigma", "family.sigma"]
    assert found["family.sigma"] > 1.0 > abs(found["sigma"])


def test_tables_of_other_kinds(tmp_path):
    expected = from_formula("count ~ hour + origin", TABLE, family="poisson")
    columns = {name: TABLE[name].to_numpy() for name in ("hour", "origin", "count")}
    TABLE.to_csv(tmp_path / "t.csv", index=False)
    nullable = TABLE.convert_dtypes()
    objects = TABLE.astype(object)
    for table in (columns, tmp_path / "t.csv", str(tmp_path / "*.csv"), nullable, objects):
        found = from_formula("count ~ hour + origin", table, family="poisson")
        assert found.model == expected.model
        np.testing.assert_array_equal(found.data["x"], expected.data["x"])
        np.testing.assert_array_equal(found.data["y"], expected.data["y"])


def test_only_the_formulas_columns_are_read(tmp_path, monkeypatch):
    from coremcmc.models.formula import table as module

    asked = []
    whole = module.read_table
    monkeypatch.setattr(
        module,
        "read_table",
        lambda path, columns: asked.append(columns) or whole(path, columns=columns),
    )
    TABLE.to_parquet(tmp_path / "t.parquet")
    from_formula("count ~ log(dist) + poly(temp, 2)", tmp_path / "t.parquet", family="poisson")
    assert asked == [("count", "dist", "temp")]


def test_names_that_need_quotes_and_names_of_functions():
    table = TABLE.rename(columns={"temp": "temp (F)", "dist": "scale"})
    model, _ = from_formula("delay ~ `temp (F)` + scale + log(`temp (F)` + 100)", table.head(50),
                            family="gaussian")  # fmt: skip
    assert model.names == ("temp (F)", "scale", "log(`temp (F)` + 100)")


def test_a_dot_is_all_other_columns():
    model, _ = from_formula("delay ~ .", TABLE[["delay", "hour", "origin"]], family="gaussian")
    assert model.names == ("hour", "origin[T.JFK]", "origin[T.LGA]")


def test_float32_halves_the_memory():
    whole = from_formula("delay ~ hour + temp", TABLE, family="gaussian", **WIDE)
    half = from_formula("delay ~ hour + temp", TABLE, family="gaussian", dtype="float32", **WIDE)
    assert half.data["x"].nbytes * 2 == whole.data["x"].nbytes
    assert half.data["x"].dtype == np.float32
    assert mode(half)["temp"] == pytest.approx(mode(whole)["temp"], rel=1e-4)
    seconds = TABLE.assign(time=1.7e9 + TABLE["hour"])
    message = error_of("delay ~ time", seconds, family="gaussian", dtype="float32")
    assert "'time' varies too little for its size" in message


# -- responses ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "left", ["is_late", "I(late == 'yes')", "late == 'yes'", "{late == 'yes'}", "late != 'no'"]
)
def test_responses_that_say_which_is_one(left):
    _, data = from_formula(f"{left} ~ hour", TABLE, family="logistic")
    np.testing.assert_array_equal(data["y"], TABLE["is_late"])


def test_a_transformed_response():
    _, data = from_formula("log(delay + 200) ~ hour", TABLE, family="student_t")
    np.testing.assert_allclose(data["y"], np.log(TABLE["delay"] + 200))


@pytest.mark.parametrize("family", ["logistic", "probit"])
def test_a_text_response_must_say_which_is_one(family):
    for table in (TABLE, TABLE.astype({"late": "category"})):
        message = error_of("late ~ hour", table, family=family)
        assert "'late' is text ('no', 'yes')" in message
        assert "I(late == 'yes')" in message


@pytest.mark.parametrize(
    ("formula", "family", "expected"),
    [
        ("origin ~ hour", "gaussian", "'origin' is text"),
        ("origin ~ hour", "poisson", "needs numbers"),
        ("month ~ hour", "logistic", r"'month' must be 0 or 1.*I\(month == "),
        ("delay ~ hour", "poisson", "'delay' must be a count"),
        ("I(0 - count) ~ hour", "negative_binomial", "must be a count"),
        ("I(hour > 99) ~ temp", "logistic", "is False in every row"),
        ("I(0 * hour) ~ temp", "gaussian", "is 0 in every row"),
        ("log(count) ~ temp", "gaussian", r"'log\(count\)' is not finite, first in row"),
        ("poly(temp, 2) ~ hour", "gaussian", "several columns"),
    ],
)
def test_responses_that_do_not_fit(formula, family, expected):
    import re

    assert re.search(expected, error_of(formula, TABLE, family=family))


# -- missing values -------------------------------------------------------------------------------


def with_gaps():
    table = TABLE.copy()
    table.loc[[3, 10], "temp"] = np.nan
    table.loc[[10, 20, 30], "origin"] = None
    table["when"] = pd.Series(pd.date_range("2020", periods=N, freq="h")).mask(TABLE.index == 5)
    table["nothing"] = np.nan
    return table


def test_missing_values_are_counted_and_refused():
    message = error_of("delay ~ temp + origin + I(when.dt.hour)", with_gaps(), family="gaussian")
    assert "'origin' (3), 'temp' (2), 'when' (1): 5 of 3,000 rows" in message
    assert "missing='drop'" in message


def test_rows_with_missing_values_are_dropped_when_asked():
    problem, told = warning_of(
        "delay ~ temp + origin", with_gaps(), family="gaussian", missing="drop"
    )
    assert "4 of 3,000 rows were left out" in told
    assert "'origin' (3), 'temp' (2)" in told
    kept = np.setdiff1d(np.arange(N), [3, 10, 20, 30])
    np.testing.assert_array_equal(problem.rows, kept)
    np.testing.assert_array_equal(problem.data["y"], TABLE["delay"].to_numpy()[kept])


def test_missing_values_elsewhere_do_not_matter():
    problem = from_formula("delay ~ hour", with_gaps(), family="gaussian")
    assert len(problem.rows) == N


def test_a_column_without_values_and_a_table_without_rows():
    for missing in ("refuse", "drop"):
        message = error_of("delay ~ nothing", with_gaps(), family="gaussian", missing=missing)
        assert "'nothing' has no value at all" in message
    gaps = pd.DataFrame({"y": [1.0, np.nan], "x": [np.nan, 2.0]})
    assert "no row is left" in error_of("y ~ x", gaps, family="gaussian", missing="drop")
    assert "no rows" in error_of("y ~ x", gaps.head(0), family="gaussian")


# -- columns that say nothing ---------------------------------------------------------------------


def test_constant_columns_are_named_and_left_out():
    table = TABLE.assign(one=7.0, year=2013)
    problem, told = warning_of("delay ~ one + hour + year + temp", table, family="gaussian")
    assert "the same value in every row: 'one', 'year'" in told
    assert problem.model.names == ("hour", "temp")
    np.testing.assert_array_equal(problem.data["x"], TABLE[["hour", "temp"]])
    alone, _ = warning_of("delay ~ one", table, family="gaussian")
    assert alone.model.names == ()
    assert mode(alone)["Intercept"] == pytest.approx(TABLE["delay"].mean(), rel=1e-3)


def test_a_constant_in_place_of_an_intercept_stays():
    model, _ = from_formula("delay ~ 0 + one + hour", TABLE.assign(one=7.0), family="gaussian")
    assert model.names == ("one", "hour")


def test_a_combination_of_levels_that_no_row_has_is_left_out():
    table = TABLE[~((TABLE["origin"] == "LGA") & (TABLE["month"] == 4))]
    problem, told = warning_of("delay ~ C(origin) * C(month)", table, family="gaussian")
    assert "C(origin)[T.LGA]:C(month)[T.4]" in told
    assert "C(origin)[T.LGA]:C(month)[T.4]" not in problem.model.names


def test_collinear_columns_are_named_with_what_they_duplicate():
    table = TABLE.assign(km=1.609 * TABLE["dist"] + 3.0, mix=TABLE["hour"] - 0.5 * TABLE["temp"])
    problem, told = warning_of("delay ~ dist + hour + temp + km + mix", table, family="gaussian")
    assert "'km' of 'dist'; 'mix' of 'hour', 'temp'" in told
    assert problem.model.names == ("dist", "hour", "temp", "km", "mix")
    found = mode(problem)  # the prior decides, and nothing is singular
    assert all(np.isfinite(v) for v in found.values())


def test_what_depends_on_others_among_some_rows_only_is_not_collinear(monkeypatch):
    from coremcmc.models.formula import collinearity

    monkeypatch.setattr(collinearity, "_MOST_ROWS", 100)
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 5_000))
    rare, twin = np.zeros(5_000), a.copy()
    rare[77], twin[77] = 1.0, a[77] + 1.0  # not among the rows that are looked at
    matrix = np.column_stack([a, b, rare, twin, a + 2 * b])
    found = dependent_columns(matrix, np.ones(5), centre=True)
    assert found == [Dependence(4, (0, 1))]
    assert dependent_columns(np.column_stack([a, a + 1]), np.ones(2), centre=False) == []
    assert dependent_columns(np.column_stack([a, a + 1]), np.ones(2), centre=True) == [
        Dependence(1, (0,))
    ]


def test_more_coefficients_than_rows():
    table = TABLE.head(8).assign(id=np.arange(8))
    _, told = warning_of("delay ~ C(id) + temp", table, family="gaussian")
    assert "the prior decides" in told


# -- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("delay ~ hour +", "does not parse: Operator `+`"),
        ("delay ~ (hour", "does not parse"),
        ("delay ~ hour == 3", "I( )"),
        ("hour + temp", "has no response"),
        ("delay + temp ~ hour", "one response"),
        ("delay ~ hour | temp", "'|'"),
        ("delay ~ hours", "names 'hours', which is not in the table. Did you mean 'hour'?"),
        ("delay ~ poly(zzz, 2)", "names 'zzz', which is not in the table. Its columns: hour,"),
        ("delays ~ hour", "Did you mean 'delay'?"),
        ("delay ~ tan(hour)", "calls 'tan', which is not known. NumPy's functions are there as "),
        ("delay ~ log(count)", "the term 'log(count)' of the formula is not finite in"),
        ("delay ~ np.sqrt(temp - 60)", "'np.sqrt(temp - 60)' of the formula is not finite"),
        ("delay ~ lag(hour)", "'lag(hour)' of the formula is not finite in 1 rows"),
        ("delay ~ temp.values", "write I(temp.values)"),
        ("delay ~ temp.mean()", "one value for each row"),
        ("delay ~ I(origin + 1)", "'I(origin + 1)' cannot be computed"),
        ("delay ~ C(origin, levels=['EWR', 'JFK'])", "cannot be computed: Data has categories"),
        ("delay ~ exp(exp(hour))", "not finite"),
        ("delay ~ np.exp(hour * 9):np.exp(hour * 9.5)", "above 1e100"),
        ("delay ~ 0", "has no terms"),
    ],
)
def test_formulas_that_mean_nothing(formula, expected):
    assert expected in error_of(formula, TABLE, family="gaussian")


def test_a_time_is_no_number():
    table = TABLE.assign(when=pd.date_range("2020", periods=N, freq="h"))
    message = error_of("delay ~ when", table, family="gaussian")
    assert "'when' of the formula is a time" in message
    assert "I(when.dt.hour)" in message
    model, _ = from_formula("delay ~ I(when.dt.hour)", table, family="gaussian")
    assert model.names == ("I(when.dt.hour)",)
    assert "write I(when.dt.hour)" in error_of("delay ~ when.dt.hour", table, family="gaussian")


def test_tables_that_are_none():
    assert "not a list" in error_of("y ~ x", [1, 2], family="gaussian")
    assert "shape (2, 2)" in error_of("y ~ x", {"x": np.zeros((2, 2))}, family="gaussian")
    ragged = {"x": np.zeros(2), "y": np.zeros(3)}
    assert "differ in their number" in error_of("y ~ x", ragged, family="gaussian")
    assert "no file or folder" in error_of("y ~ x", "nowhere.csv", family="gaussian")
    twice = pd.concat([TABLE[["delay", "hour"]], TABLE[["hour"]]], axis=1)
    assert "more than one column of the name 'hour'" in error_of(
        "delay ~ hour", twice, family="gaussian"
    )
    mixed = TABLE.assign(hour=["x", *range(N - 1)])
    assert "column 'hour' mixes types" in error_of("delay ~ hour", mixed, family="gaussian")


def test_arguments_are_checked_before_the_table_is_read():
    assert (
        "did you mean" in error_of("y ~ x", "nowhere.csv", family="logit").lower() + " did you mean"
    )
    assert "'logit' is unknown" in error_of("y ~ x", "nowhere.csv", family="logit")
    assert "missing must be" in error_of("y ~ x", TABLE, family="gaussian", missing="ignore")
    assert "dtype must be" in error_of("y ~ x", TABLE, family="gaussian", dtype="int8")
    prior = coremcmc.models.priors.Normal((1.0, 2.0))
    message = error_of("delay ~ hour", TABLE, family="gaussian", priors={"beta": prior})
    assert "priors['beta'] was given for 2 coefficients, but the formula has 1: hour" in message


def test_priors_by_the_keywords_of_before_are_told_and_used():
    with pytest.warns(DeprecationWarning, match="write priors=.'beta': 'normal"):
        old = from_formula("delay ~ hour", TABLE, family="gaussian", prior="normal(0.3)")
    new = from_formula("delay ~ hour", TABLE, family="gaussian", priors={"beta": "normal(0.3)"})
    assert old.model == new.model


def test_a_design_larger_than_the_machine():
    table = pd.DataFrame({"y": np.arange(200_000.0), "id": np.arange(200_000) % 150_000})
    message = error_of("y ~ C(id)", table, family="gaussian")
    assert "149,999 columns of 200,000 rows" in message


# -- whole fits -----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the hot-start test has not passed")
def test_a_fit_from_a_formula_has_named_coefficients_on_the_users_scale():
    table = make_table(20_000, seed=4)
    problem = from_formula("is_late ~ hour + log(dist) + C(origin)", table, family="logistic")
    fit = coremcmc.fit(*problem, 300, num_iterations=1_500, num_draws=500, progress=False)
    assert fit.certificate.verdict == "good"
    frame = table.assign(is_late=table["is_late"].astype(float))
    theirs = sm.Logit.from_formula("is_late ~ hour + np.log(dist) + C(origin)", frame).fit(disp=0)
    theirs_by_name = {n.replace("np.", ""): v for n, v in theirs.params.items()}
    assert set(fit.posterior) == set(theirs_by_name)
    for name, value in theirs_by_name.items():
        draws = np.asarray(fit.posterior[name])
        # A flat prior's estimate: the weak one here moves it by far less than this.
        assert abs(draws.mean() - value) < 0.3 * draws.std(), name
    assert "C(origin)[T.JFK]" in fit.summary()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the hot-start test has not passed")
@pytest.mark.filterwarnings("ignore:columns are linear combinations")
@pytest.mark.parametrize("right", ["1", "hour + temp + I(hour + temp)"])
def test_degenerate_formulas_fit(right):
    problem = from_formula(f"delay ~ {right}", TABLE, family="gaussian")
    fit = coremcmc.fit(*problem, 100, num_iterations=500, num_draws=300, progress=False)
    sigma = np.asarray(fit.posterior["sigma"])
    assert np.isfinite(sigma).all()
    assert sigma.mean() == pytest.approx(mode(problem)["sigma"], rel=0.05)
