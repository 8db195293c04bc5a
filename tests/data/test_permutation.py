"""Distinct indices: distinct, uniform in every way that can be counted, and cheap.

False alarms: each chi-square test fails with probability 1e-4 under uniformity.
"""

import functools
import math
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from coremcmc.data.permutation import distinct_indices

FALSE_ALARM = 1e-4


@functools.cache
def draws(num_rows, size, num_keys):
    """One row of indices per key."""
    keys = jax.random.split(jax.random.key(0), num_keys)
    return np.asarray(jax.jit(jax.vmap(lambda key: distinct_indices(key, size, num_rows)))(keys))


def uniform_p_value(counts):
    """Pearson's test that cells of independent draws are equally likely."""
    assert counts.mean() > 5
    return scipy.stats.chisquare(counts).pvalue


@pytest.mark.parametrize(
    ("num_rows", "size"),
    [
        (1, 1),
        (2, 1),
        (2, 2),
        (3, 2),
        (5, 4),
        (9, 8),
        (10, 10),
        (53, 52),
        (1024, 1023),
        (65_537, 65_536),
        (10**6 + 3, 1000),
        (2**32, 1000),
        (10**10, 1),
        (10**10, 5000),
    ],
)
def test_indices_are_distinct_and_in_range(num_rows, size):
    indices = draws(num_rows, size, num_keys=20)
    assert indices.shape == (20, size)
    assert indices.min() >= 0
    assert indices.max() < num_rows
    assert all(len(np.unique(row)) == size for row in indices)


@pytest.mark.parametrize(
    ("num_rows", "size"), [(2, 1), (7, 1), (7, 3), (10, 5), (23, 1), (53, 5), (53, 40), (1009, 30)]
)
def test_every_row_is_included_equally_often(num_rows, size):
    # Without replacement, inclusion counts over R keys have the covariance
    # R p (1 − p) N/(N − 1) (I − 11ᵀ/N) with p = size/N, so that this sum is chi-square of N − 1.
    num_keys = 1_000_000 if size == 1 else 100_000
    p = size / num_rows
    counts = np.bincount(draws(num_rows, size, num_keys).ravel(), minlength=num_rows)
    variance = num_keys * p * (1 - p) * num_rows / (num_rows - 1)
    statistic = ((counts - num_keys * p) ** 2).sum() / variance
    assert scipy.stats.chi2.sf(statistic, num_rows - 1) > FALSE_ALARM


@pytest.mark.parametrize(
    ("num_rows", "size"), [(7, 2), (10, 2), (10, 5), (53, 2), (53, 5), (53, 40)]
)
def test_every_pair_of_rows_is_included_together_equally_often(num_rows, size):
    # Pair counts less their fit a_i + a_j lie in an eigenspace of the Johnson scheme J(N, 2), of
    # dimension N (N − 3)/2. Their covariance there is R (v₀ − 2 v₁ + v₂), where v_k is the
    # covariance of two pairs' inclusions that differ in k elements: chi-square again.
    num_keys, n = 100_000, num_rows
    indices = draws(n, size, num_keys)
    included = np.zeros((num_keys, n))
    np.put_along_axis(included, indices, 1.0, axis=1)
    together = included.T @ included
    np.fill_diagonal(together, 0.0)
    totals = together.sum(axis=1)
    effect = (totals - totals.mean()) / (n - 2)
    first, second = np.triu_indices(n, 1)
    pairs = together[first, second]
    residual = pairs - pairs.mean() - effect[first] - effect[second]
    p2, p3, p4 = (np.prod([(size - i) / (n - i) for i in range(k)]) for k in (2, 3, 4))
    variance = num_keys * ((p2 - p2**2) - 2 * (p3 - p2**2) + (p4 - p2**2))
    statistic = (residual**2).sum() / variance
    assert scipy.stats.chi2.sf(statistic, n * (n - 3) / 2) > FALSE_ALARM


@pytest.mark.parametrize(("num_rows", "size"), [(4, 2), (7, 3), (9, 4)])
def test_every_subset_is_equally_likely(num_rows, size):
    drawn = np.sort(draws(num_rows, size, num_keys=100_000), axis=1)
    codes = drawn @ num_rows ** np.arange(size)
    subsets, counts = np.unique(codes, return_counts=True)
    assert len(subsets) == math.comb(num_rows, size)
    assert uniform_p_value(counts) > FALSE_ALARM


@pytest.mark.parametrize(("i", "j"), [(0, 1), (1, 2), (0, 4)])
@pytest.mark.parametrize("num_rows", [7, 10, 53])
def test_every_ordered_pair_is_equally_likely_at_two_places(num_rows, i, j):
    indices = draws(num_rows, 5, num_keys=100_000)
    counts = np.bincount(indices[:, i] * num_rows + indices[:, j], minlength=num_rows**2)
    counts = counts.reshape(num_rows, num_rows)
    assert counts.diagonal().sum() == 0
    assert uniform_p_value(counts[~np.eye(num_rows, dtype=bool)]) > FALSE_ALARM


def test_the_difference_of_two_places_is_uniform():
    # 54 = 6 · 9: the network over Z₆ × Z₉ keeps a difference within Z₉ while that in Z₆ is zero.
    first, second = draws(54, 2, num_keys=1_000_000).T
    counts = np.bincount((second - first) % 54, minlength=54)
    assert counts[0] == 0
    assert uniform_p_value(counts[1:]) > FALSE_ALARM


@pytest.mark.parametrize("place", [0, 1, 4])
@pytest.mark.parametrize("num_rows", [7, 10, 53])
def test_a_single_place_is_uniform(num_rows, place):
    counts = np.bincount(draws(num_rows, 5, num_keys=100_000)[:, place], minlength=num_rows)
    assert uniform_p_value(counts) > FALSE_ALARM


@pytest.mark.parametrize("num_rows", [10**6 + 3, 10**10])
def test_high_and_low_digits_are_uniform_among_many_rows(num_rows):
    # They are the two halves of the network. Cells are equal but for 1e-4 of a cell at most;
    # rows of one draw are distinct, which at 20 of 10⁶ changes the variance by less than 1e-4.
    drawn = draws(num_rows, 20, num_keys=5000).ravel()
    assert uniform_p_value(np.bincount(drawn * 100 // num_rows, minlength=100)) > FALSE_ALARM
    assert uniform_p_value(np.bincount(drawn % 100, minlength=100)) > FALSE_ALARM


def test_different_keys_give_different_sets():
    drawn = np.sort(draws(10**6, 10, num_keys=1000), axis=1)
    assert len(np.unique(drawn, axis=0)) == 1000


def test_the_same_key_gives_the_same_indices():
    first, second = (distinct_indices(jax.random.key(3), 50, 12_345) for _ in range(2))
    np.testing.assert_array_equal(first, second)


def largest_array(function, *arguments):
    """Elements of the largest array in a compiled program, and its temporary bytes."""
    compiled = jax.jit(function).lower(*arguments).compile()
    shapes = re.findall(r"\b[a-z]+\d+\[([\d,]+)\]", compiled.as_text())
    elements = max(np.prod([int(n) for n in shape.split(",")]) for shape in shapes)
    return elements, compiled.memory_analysis().temp_size_in_bytes


def test_cost_depends_on_the_size_and_not_on_the_number_of_rows():
    num_rows, size, key = 10**6 + 3, 128, jax.random.key(0)
    elements, temporary_bytes = largest_array(lambda k: distinct_indices(k, size, num_rows), key)
    assert elements <= 8 * size
    assert temporary_bytes <= 64 * 8 * size
    # The same measurement finds JAX's own shuffle of all rows.
    elements, _ = largest_array(
        lambda k: jax.random.choice(k, jnp.arange(num_rows), (size,), replace=False), key
    )
    assert elements >= num_rows
