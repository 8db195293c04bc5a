"""The weights, and the heaviest rows with their data."""

import numpy as np
import pandas as pd
import pytest

from coremcmc.report import render
from tests.report.pages import numbers_in, page_of
from tests.report.report_fits import make_coreset, make_fit


def test_the_heaviest_rows_come_first_with_their_data(fit, page):
    header, rows = page.table("share")
    assert header == ["row", "weight", "share", "y", "x[0]", "x[1]", "x[2]"]
    order = np.argsort(-fit.coreset.weights)[:12]
    assert [int(row[0]) for row in rows] == list(fit.coreset.indices[order])
    np.testing.assert_allclose(
        [numbers_in(row[1]) for row in rows], fit.coreset.weights[order], rtol=1e-3
    )
    first = fit.coreset.rows["x"][order[0]]
    np.testing.assert_allclose([float(x) for x in rows[0][4:]], first, rtol=1e-3)


def test_the_heaviest_rows_show_the_users_own_columns(fit):
    size = len(fit.coreset)
    whole = pd.DataFrame({"city": [f"town {i}" for i in range(1_000)], "temp": np.arange(1_000.0)})
    table = fit.coreset.to_pandas(whole)
    header, rows = page_of(fit, coreset_table=table).table("share")
    assert header == ["row", "weight", "share", "city", "temp"]
    heaviest = fit.coreset.indices[np.argmax(fit.coreset.weights)]
    assert rows[0][0] == str(heaviest)
    assert rows[0][3:] == [f"town {heaviest}", str(heaviest)]
    own = whole.iloc[fit.coreset.indices].assign(weight=1.5)  # a column of the user's, by that name
    header, rows = page_of(fit, coreset_table=own).table("share")
    assert header == ["row", "weight", "share", "city", "temp", "weight"]
    with pytest.raises(ValueError, match=f"coreset_table must have a row for each.*{size}"):
        render(fit, coreset_table=whole)
    with pytest.raises(ValueError, match="coreset_table must be a pandas DataFrame"):
        render(fit, coreset_table={"city": []})


@pytest.mark.parametrize(
    "weights", [np.zeros(20), np.full(20, 50.0), [1e6] + [0.0] * 19, np.geomspace(1e-12, 1e4, 20)]
)
def test_weights_of_every_kind(weights):
    page = page_of(make_fit(coreset=make_coreset(weights=weights)))
    zeros = int((np.asarray(weights) == 0).sum())
    assert f"Zero weights{zeros}" in page.text.replace("\n", "")
    assert page.count("figure") == 15 if zeros < 20 else 13


def test_rows_that_are_no_table():
    """A model whose rows are one array, a tensor or many columns."""
    many = {"image": np.zeros((20, 8, 8)), "label": np.arange(20)}
    header, _ = page_of(make_fit(coreset=make_coreset(columns=many))).table("share")
    assert header[3:6] == ["label", "image[0,0]", "image[0,1]"]
    assert len(header) == 33
    alone = {"data": np.arange(20.0)}
    header, _ = page_of(make_fit(coreset=make_coreset(columns=alone))).table("share")
    assert header[3:] == ["data"]
