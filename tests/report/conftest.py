"""One fit and its page, for all tests that only look at them."""

import pytest

from tests.report.pages import page_of
from tests.report.report_fits import make_fit


@pytest.fixture(scope="session")
def fit():
    return make_fit()


@pytest.fixture(scope="session")
def page(fit):
    return page_of(fit)
