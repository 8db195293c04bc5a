"""Which rows form the coreset, and their unbiased weights. False alarms: 1e-4 a test."""

import numpy as np
import pytest
import scipy.stats

from coremcmc import MemoryData, Stratified
from coremcmc.selection import Uniform


def classes(*sizes):
    """Data with a shuffled column of classes 0, 1, … of these sizes."""
    y = np.repeat(np.arange(len(sizes)), sizes)
    return MemoryData({"y": np.random.default_rng(9).permutation(y)})


def counts_by_class(selected, data):
    return np.bincount(data.column("y")[selected.indices], minlength=data.column("y").max() + 1)


def inclusion_p_value(counts, num_draws, size):
    """Inclusion counts without replacement: covariance R p (1 − p) N/(N − 1) (I − 11ᵀ/N)."""
    n = len(counts)
    p = size / n
    variance = num_draws * p * (1 - p) * n / (n - 1)
    return scipy.stats.chi2.sf(((counts - num_draws * p) ** 2).sum() / variance, n - 1)


@pytest.mark.parametrize("size", [1, 2, 9, 10])
def test_uniform_rows_are_distinct_ascending_and_of_weight_n_over_m(size):
    selected = Uniform()(np.random.default_rng(0), classes(4, 6), size)
    assert len(selected.indices) == size
    assert (np.diff(selected.indices) > 0).all()
    assert 0 <= selected.indices[0] <= selected.indices[-1] < 10
    np.testing.assert_allclose(selected.weights, np.full(size, 10 / size), rtol=1e-15)


def test_uniform_takes_every_row_equally_often():
    data, num_draws = classes(4, 7), 5000
    drawn = [Uniform()(np.random.default_rng(seed), data, 4).indices for seed in range(num_draws)]
    counts = np.bincount(np.concatenate(drawn), minlength=11)
    assert inclusion_p_value(counts, num_draws, 4) > 1e-4


@pytest.mark.parametrize(
    ("negatives", "positives", "size", "chosen"),
    [
        (1000, 10, 100, 10),  # M > 2 · positives: all of them
        (1000, 10, 21, 10),
        (1000, 10, 20, 10),
        (1000, 10, 18, 9),  # else half
        (1000, 10, 2, 1),
        (500, 500, 100, 50),
        (10, 1000, 100, 90),  # the rare class may be the negatives
        (57, 98_616, 1000, 943),
    ],
)
def test_two_classes_follow_the_papers_rule_for_rare_events(negatives, positives, size, chosen):
    data = classes(negatives, positives)
    selected = Stratified("y")(np.random.default_rng(0), data, size)
    assert list(counts_by_class(selected, data)) == [size - chosen, chosen]


@pytest.mark.parametrize(
    ("sizes", "size", "expected"),
    [
        ((100, 100, 100), 30, (10, 10, 10)),
        ((100, 4, 100), 30, (13, 4, 13)),
        ((3, 5, 100, 100), 40, (3, 5, 16, 16)),
        ((50, 1, 2, 3), 56, (50, 1, 2, 3)),
        ((9, 9, 9), 3, (1, 1, 1)),
    ],
)
def test_more_classes_share_equally_as_far_as_their_rows_go(sizes, size, expected):
    data = classes(*sizes)
    selected = Stratified("y")(np.random.default_rng(0), data, size)
    assert tuple(counts_by_class(selected, data)) == expected


@pytest.mark.parametrize("size", [31, 32, 97])
def test_shares_that_do_not_divide_differ_by_one_at_most(size):
    data = classes(100, 120, 140)
    counts = counts_by_class(Stratified("y")(np.random.default_rng(0), data, size), data)
    assert counts.sum() == size
    assert np.ptp(counts) <= 1


@pytest.mark.parametrize(
    ("sizes", "size"), [((1000, 10), 100), ((1000, 10), 15), ((7, 80, 200), 31), ((3, 4), 7)]
)
def test_stratified_weights_are_class_size_over_count_and_sum_to_n(sizes, size):
    data = classes(*sizes)
    selected = Stratified("y")(np.random.default_rng(1), data, size)
    assert (np.diff(selected.indices) > 0).all()
    assert len(selected.indices) == size
    y = data.column("y")[selected.indices]
    expected = (np.array(sizes) / counts_by_class(selected, data))[y]
    np.testing.assert_allclose(selected.weights, expected, rtol=1e-15)
    assert selected.weights.sum() == pytest.approx(sum(sizes), rel=1e-12)


def test_stratified_takes_every_row_of_a_class_equally_often():
    data, num_draws = classes(9, 3, 6), 5000
    rule = Stratified("y")
    drawn = [rule(np.random.default_rng(seed), data, 8).indices for seed in range(num_draws)]
    counts = np.bincount(np.concatenate(drawn), minlength=18)
    y = data.column("y")
    # Shares of 8 over classes of 9, 3, 6: 2 to the smallest, then 3 and 3.
    for stratum, share in ((0, 3), (1, 2), (2, 3)):
        assert inclusion_p_value(counts[y == stratum], num_draws, share) > 1e-4


def test_classes_may_be_any_numbers():
    data = MemoryData({"group": np.array([-1.5, 7.0, 7.0, -1.5, 7.0, 7.0])})
    selected = Stratified("group")(np.random.default_rng(0), data, 4)
    assert {0, 3} <= set(selected.indices)
    np.testing.assert_array_equal(np.sort(selected.weights), [1.0, 1.0, 2.0, 2.0])


def test_a_constant_column_is_refused():
    with pytest.raises(ValueError, match=r"'y' is constant \(0\)"):
        Stratified("y")(np.random.default_rng(0), classes(10), 4)


def test_a_column_of_too_many_values_is_refused():
    data = MemoryData({"y": np.arange(150)})
    with pytest.raises(ValueError, match="'y' has 150 distinct values, more than 100"):
        Stratified("y")(np.random.default_rng(0), data, 120)
    with pytest.raises(ValueError, match="'y' has 150 distinct values, more than 120"):
        Stratified("y", max_strata=200)(np.random.default_rng(0), data, 120)


def test_more_classes_than_rows_of_the_coreset_are_refused():
    with pytest.raises(ValueError, match="'y' has 3 distinct values, more than 2"):
        Stratified("y")(np.random.default_rng(0), classes(5, 5, 5), 2)


def test_a_column_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match=r"no column 'z'.*\['y'\]"):
        Stratified("z")(np.random.default_rng(0), classes(5, 5), 2)


def test_a_matrix_is_refused_as_a_column_of_classes():
    data = MemoryData({"x": np.tile([[0, 1, 2]], (20, 1))})
    with pytest.raises(ValueError, match="'x'"):
        Stratified("x")(np.random.default_rng(0), data, 6)
