"""All lines of a hit-and-run step in one GPU kernel, a chain a block.

Under ``vmap`` XLA runs the loops of slice sampling in lockstep, a kernel or more a round, and every
chain waits for the slowest. Here each chain loops on its own, in registers: the linear predictors
at the current point and along the lines are all that it needs of the rows' features. It serves
linear-predictor models; everything else goes through XLA.

The kernel is written in Pallas for its Triton backend.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from coremcmc.base import LinearPredictorModel, Position
from coremcmc.kernels.slice_on_a_line import Line, SliceSampler
from coremcmc.posterior.target import Target

__all__ = ["can_fuse", "sample_lines_fused"]

_MAX_ROWS = 4096
_ROWS_PER_WARP = 128


def can_fuse(target: Target, position: Position) -> bool:
    """Whether a fused kernel is to be had: on a GPU, for this model and this coreset."""
    return jax.default_backend() == "gpu" and _fits(target, position) and _has_triton()


def _fits(target: Target, position: Position) -> bool:
    model = target.model
    if not isinstance(model, LinearPredictorModel) or not model.has_independent_prior:
        return False
    if target.weights.shape[-1] > _MAX_ROWS or any(x.ndim > 1 for x in jax.tree.leaves(position)):
        return False
    eta = jax.ShapeDtypeStruct(target.weights.shape, target.weights.dtype)
    try:  # a model whose likelihood reads more of a row than numbers says so here
        jax.eval_shape(model.pointwise, eta, _columns(target.rows), position)
    except Exception:
        return False
    return True


def _has_triton() -> bool:
    try:
        from jax.experimental.pallas import triton  # noqa: F401
    except ImportError:
        return False
    return True


def _columns(rows: Any) -> Any:
    """Keep the columns of numbers; matrices enter through the linear predictor alone."""
    return jax.tree.map(lambda x: x if x.ndim == 1 else None, rows)


def _power_of_two(n: int) -> int:
    return 1 << max(n - 1, 0).bit_length()


def _padded(x: Array) -> Array:
    """Zeros behind a vector up to a power of two, as the GPU wants it; numbers stay numbers."""
    return x if x.ndim == 0 else jnp.pad(x, (0, _power_of_two(x.shape[0]) - x.shape[0]))


def sample_lines_fused(
    sampler: SliceSampler,
    target: Target,
    position: Position,
    directions: Position,
    uniforms: Float[Array, "passes u"],
    interpret: bool = False,
) -> tuple[Float[Array, " passes"], Float[Array, ""], Bool[Array, ""]]:
    """Move along each line in turn: (t of each line, evaluations, stuck).

    ``directions`` has the position's structure, each leaf with a leading axis of lines.
    """
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import triton

    model: Any = target.model
    num_passes, num_rows = uniforms.shape[0], target.weights.shape[0]
    # Apart, because runs under vmap may share their directions.
    eta = model.predictor(position, target.rows)
    slopes = jax.vmap(model.predictor, in_axes=(0, None))(directions, target.rows)
    size = _power_of_two(num_rows)
    # Zeros added to a position are constants in an independent prior.
    here = jax.tree.map(_padded, position)
    there = jax.tree.map(lambda d: jax.vmap(_padded)(d), directions)
    columns, structure = jax.tree.flatten(_columns(target.rows))
    leaves, position_structure = jax.tree.flatten(here)
    lines = jax.tree.leaves(there)

    def kernel(*refs: Any) -> Any:
        eta_ref, slopes_ref, weights_ref, uniforms_ref, *rest, out = refs
        column_refs, rest = rest[: len(columns)], rest[len(columns) :]
        position_refs, line_refs = rest[: len(leaves)], rest[len(leaves) :]
        index = jnp.arange(size)
        inside = index < num_rows

        def load(ref: Any, *first: Any) -> Any:
            return triton.load(ref.at[(*first, index)], mask=inside, other=0)

        weights = load(weights_ref)
        rows = jax.tree.unflatten(structure, [load(ref) for ref in column_refs])
        start = [ref[...] if ref.ndim else ref[()] for ref in position_refs]

        def logdensity_at(eta: Any, leaves: Any) -> Any:
            there = jax.tree.unflatten(position_structure, leaves)
            terms = model.pointwise(eta, rows, there)
            return jnp.sum(jnp.where(weights > 0, terms, 0.0) * weights) + model.logprior_fn(there)

        def one_pass(i: Any, carry: Any) -> Any:
            eta, logdensity, evaluations, stuck, *point = carry
            slope = load(slopes_ref, i)
            steps = [ref[i, :] if ref.ndim == 2 else ref[i] for ref in line_refs]

            def moved(t: Any) -> Any:
                return [x + t * d for x, d in zip(point, steps, strict=True)]

            def along(t: Any) -> Any:
                return logdensity_at(eta + t * slope, moved(t))

            def uniform(number: Any) -> Any:
                return uniforms_ref[i, number.astype(jnp.int32)]

            line = Line(along, uniform, lambda a, b: (along(a), along(b)), _tuple_loop)
            sampled = sampler.sample(line, logdensity)
            out[i] = sampled.t
            evaluations = evaluations + sampled.num_evaluations
            stuck = jnp.where(sampled.is_stuck, stuck + 1.0, stuck)
            return (
                eta + sampled.t * slope,
                sampled.logdensity,
                evaluations,
                stuck,
                *moved(sampled.t),
            )

        zero = jnp.zeros((), uniforms.dtype)
        eta = load(eta_ref)
        begin = (eta, logdensity_at(eta, start), zero, zero, *start)
        end = jax.lax.fori_loop(0, num_passes, one_pass, begin)
        out[num_passes], out[num_passes + 1] = end[2], end[3]

    operands = [eta, slopes, target.weights, uniforms, *columns, *leaves, *lines]
    warps = min(max(size // _ROWS_PER_WARP, 1), 16)
    out = pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct((num_passes + 2,), uniforms.dtype),
        compiler_params=triton.CompilerParams(num_warps=warps),
        interpret=interpret,
        name="hit_and_run",
    )(*operands)
    return out[:num_passes], out[num_passes], out[num_passes + 1] > 0


def _tuple_loop(condition: Any, body: Any, carry: Any) -> Any:
    return jax.lax.while_loop(lambda c: condition(*c), lambda c: tuple(body(*c)), carry)
