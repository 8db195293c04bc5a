"""Distinct random indices in O(size), however many there are to choose from.

``jax.random.choice(replace=False)`` shuffles all N. Here a keyed pseudo-random permutation of
0 … N − 1 is applied to 0 … size − 1: a Feistel network over Z_a × Z_b with a·b barely above N,
and *cycle walking* (apply it again) for the few values that land at N or above.

A difference in one half survives two rounds with probability 1/a, so that after R rounds pairs of
rows are drawn together too often or too seldom by a relative N·a^(−R/2). R is chosen to keep that
below 10⁻⁶; very small N are shuffled outright.
"""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Key, UInt32

__all__ = ["distinct_indices"]

_SHUFFLE_BELOW = 64
_PAIR_BIAS = 1e-6


@functools.lru_cache(maxsize=256)
def _factors(n: int) -> tuple[int, int]:
    """Two factors near √n, the smallest product that is at least n."""
    root = math.isqrt(max(n - 1, 0)) + 1
    a = np.arange(max(2, root // 2), max(2, root) + 1, dtype=np.int64)
    b = np.maximum(2, -(-n // a))
    best = int(np.argmin(a * b))
    return int(a[best]), int(b[best])


def _num_rounds(n: int, a: int, b: int) -> int:
    """Return an even number of rounds that keeps the bias of pairs below ``_PAIR_BIAS``."""
    return max(8, 2 * math.ceil(math.log(n / _PAIR_BIAS) / math.log(min(a, b))))


def _mix(x: UInt32[Array, "..."]) -> UInt32[Array, "..."]:
    """Avalanche of 32 bits (the finalizer of MurmurHash3)."""
    x = (x ^ (x >> 16)) * jnp.uint32(0x85EBCA6B)
    x = (x ^ (x >> 13)) * jnp.uint32(0xC2B2AE35)
    return x ^ (x >> 16)


def _scale(x: UInt32[Array, "..."], bound: int) -> UInt32[Array, "..."]:
    """Map 32 random bits onto 0 … bound − 1 by multiplication, without a division."""
    return ((x.astype(jnp.uint64) * jnp.uint64(bound)) >> 32).astype(jnp.uint32)


def _permute(
    index: Int[Array, " size"], keys: UInt32[Array, " rounds"], a: int, b: int
) -> Int[Array, " size"]:
    """One pass of the network over Z_a × Z_b."""
    left = (index // b).astype(jnp.uint32)
    right = (index % b).astype(jnp.uint32)
    for key in keys:
        left, modulus = left + _scale(_mix(right ^ key), a), jnp.uint32(a)
        left = jnp.where(left >= modulus, left - modulus, left)
        left, right, a, b = right, left, b, a  # the halves change places
    return left.astype(jnp.int64) * b + right.astype(jnp.int64)


def distinct_indices(rng_key: Key[Array, ""], size: int, num_rows: int) -> Int[Array, " {size}"]:
    """Draw ``size`` distinct integers from 0 … ``num_rows`` − 1, all equally likely.

    Work and memory are O(size). Needs 64-bit mode.
    """
    if size == num_rows:
        return jnp.arange(num_rows)
    if num_rows < _SHUFFLE_BELOW:
        return jax.random.permutation(rng_key, num_rows)[:size]
    a, b = _factors(num_rows)
    keys = jax.random.bits(rng_key, (_num_rounds(num_rows, a, b),), jnp.uint32)
    drawn = _permute(jnp.arange(size), keys, a, b)
    if a * b == num_rows:
        return drawn
    return jax.lax.while_loop(
        lambda x: jnp.any(x >= num_rows),
        lambda x: jnp.where(x >= num_rows, _permute(x, keys, a, b), x),
        drawn,
    )
