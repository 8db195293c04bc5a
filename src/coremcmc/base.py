"""The contracts between the parts: models, kernels, data sources.

Symbols of the paper and their names here:

=========  =====================================================================
N          ``num_rows``, the number of rows of the data
M          ``coreset_size``
S          ``subsample_size``
K          ``num_chains``
θ          a *position*: any pytree of arrays
ℓ_n(θ)     ``model.loglikelihood_fn(position, rows)[n]``
π_0(θ)     ``model.logprior_fn(position)``, its logarithm
π_w(θ)     :class:`coremcmc.posterior.target.Target`, the weighted posterior
κ_w        a :class:`Kernel`
=========  =====================================================================
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from coremcmc.identity import describe

__all__ = [
    "DataSource",
    "Feed",
    "Kernel",
    "KernelInfo",
    "KernelState",
    "LinearPredictorModel",
    "Model",
    "PRNGKey",
    "Position",
    "Rows",
    "SamplingAlgorithm",
    "flat_positions",
    "named_leaves",
    "wide",
]

PRNGKey = Key[Array, ""]
"""A JAX random key, made by ``jax.random.key``."""

Position = Any
"""Parameters θ: a pytree of arrays of unconstrained reals (or what a Gibbs kernel understands)."""

Rows = Any
"""Data: a pytree of arrays that share their first axis, one entry a row."""


def named_leaves(tree: PyTree, name: str) -> dict[str, Any]:
    """Name the leaves of a pytree by their paths, ``beta`` or ``layers.0.bias``.

    A tree that is a single array gets the given name.
    """
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {
        jax.tree_util.keystr(path, simple=True, separator=".") or name: leaf
        for path, leaf in leaves
    }


def flat_positions(positions: Position) -> Float[Array, "K D"]:
    """Return the position of each of K chains as a vector, in the order of the pytree's leaves."""
    return jax.vmap(lambda position: ravel_pytree(position)[0].astype(float))(positions)


def wide(dtype: Any) -> Any:
    """Return the 64-bit type that stands for a type of numbers.

    JAX makes 32-bit floats of 32-bit integers, even where floats have 64 bits, and products of
    8-bit integers overflow.
    """
    if jnp.issubdtype(dtype, jnp.floating):
        return float
    return int if jnp.issubdtype(dtype, jnp.integer) and dtype != np.uint64 else dtype


class Model(ABC):
    """A prior and a likelihood whose rows are independent given the parameters.

    A model is immutable and hashable, so that a program compiled for it is found again.
    """

    fields: ClassVar[tuple[str, ...]] = ()
    """Names of the columns that the model reads, where its rows are a mapping."""

    default_kernel: ClassVar[str] = "hit_and_run"
    """Name of the Markov kernel that suits this model."""

    is_continuous: ClassVar[bool] = True
    """Whether every parameter is an unconstrained real, which most kernels need."""

    @abstractmethod
    def logprior_fn(self, position: Position) -> Float[Array, ""]:
        """Log density of the prior, log π_0(θ)."""

    @abstractmethod
    def loglikelihood_fn(self, position: Position, rows: Rows) -> Float[Array, " rows"]:
        """Log-likelihood ℓ_n(θ) of each row."""

    @abstractmethod
    def initial_position(self, rng_key: PRNGKey, rows: Rows) -> Position:
        """Where a chain starts; ``rows`` are the coreset's, for their shapes."""

    def constrain_fn(self, position: Position) -> Mapping[str, Array]:
        """Named parameters on the scale that a person reads."""
        return named_leaves(position, "position")

    def prepare_rows(self, rows: Rows) -> Rows:
        """Turn stored rows into what the likelihood computes with: numbers get 64 bits."""
        return jax.tree.map(lambda x: x.astype(wide(x.dtype)), rows)

    def check_rows(self, rows: Rows) -> None:  # noqa: B027 (optional, not abstract)
        """Raise ``ValueError`` where the data cannot belong to this model (host arrays)."""

    def describe(self) -> str:
        """Return one line that identifies the model and its constants, run after run."""
        return describe(self)


class LinearPredictorModel(Model):
    """A model that reads a row through predictors linear in the position.

    Then a move along a line in θ costs one matrix product, and each further point on that line
    costs O(rows) whatever the number of parameters.
    """

    has_independent_prior: ClassVar[bool] = False
    """Whether log π_0 is a sum of one finite term for each number in the position.

    It lets a GPU kernel lengthen the position by zeros, which then add a constant.
    """

    @abstractmethod
    def predictor(self, position: Position, rows: Rows) -> Float[Array, " rows"]:
        """Linear predictor η_n(θ): linear (without a constant) in the position."""

    @abstractmethod
    def pointwise(
        self, eta: Float[Array, " rows"], rows: Rows, position: Position
    ) -> Float[Array, " rows"]:
        """Log-likelihood of each row given its linear predictor."""

    def loglikelihood_fn(self, position: Position, rows: Rows) -> Float[Array, " rows"]:
        """Log-likelihood ℓ_n(θ) of each row."""
        return self.pointwise(self.predictor(position, rows), rows, position)


class KernelState(NamedTuple):
    """A Markov chain between two steps.

    Attributes
    ----------
    position
        θ.
    loglikelihoods
        ℓ_m(θ) of each coreset row. They stay true when the weights change, which a cached log
        density would not, and the gradient estimate needs them.
    """

    position: Position
    loglikelihoods: Float[Array, "*chains M"]


class KernelInfo(NamedTuple):
    """What one step did.

    Attributes
    ----------
    num_evaluations
        How often the log density of the coreset posterior was evaluated.
    is_stuck
        Whether the kernel found nowhere to go, which a correct target never causes.
    """

    num_evaluations: Int[Array, "*chains"]
    is_stuck: Bool[Array, "*chains"]


class Kernel(ABC):
    """A family of Markov kernels κ_w, each leaving the coreset posterior π_w invariant.

    Immutable and hashable, like a model. :meth:`step` is all that a kernel must have. One that
    learns a metric from the chains also has :meth:`learn_metric`, and says in :meth:`step_chains`
    when it does.

    An object that is none of this class is taken as well, where it has the two methods
    ``init(position, target)`` and ``step(rng_key, state, target)``; see
    :func:`coremcmc.kernels.given.as_kernel`.
    """

    moves_reals_only: ClassVar[bool] = False
    """Whether models with other parameters than unconstrained reals are refused."""

    def init(self, position: Position, target: Any) -> KernelState:
        """Start a chain at a position; ``ValueError`` where the model is none for this kernel."""
        model = target.model
        if self.moves_reals_only and not model.is_continuous:
            raise ValueError(
                f"{type(self).__name__} moves unconstrained reals only, and "
                f"{type(model).__name__} has other parameters. Use kernel="
                f"{model.default_kernel!r}."
            )
        return KernelState(position, target.loglikelihoods(position))

    @abstractmethod
    def step(
        self, rng_key: PRNGKey, state: KernelState, target: Any, metric: PyTree = None
    ) -> tuple[KernelState, KernelInfo]:
        """Move a chain once, by the metric that :meth:`learn_metric` returned."""

    def learn_metric(self, target: Any, positions: Position, previous: PyTree = None) -> PyTree:
        """Return what the kernel knows of the posterior's shape, here nothing.

        Learned from the positions of all chains (leading axis K), and from the ``previous`` metric
        if there is one.
        """
        return None

    def step_chains(
        self,
        rng_key: PRNGKey,
        chains: KernelState,
        target: Any,
        metric: PyTree = None,
        iteration: Int[Array, ""] | None = None,
    ) -> tuple[KernelState, KernelInfo, PyTree]:
        """Move each of K chains once; the metric comes back as the next call takes it.

        ``iteration`` counts the calls of a training, in which the weights move and the metric may
        follow them. Without it the metric stays: at fixed weights the kernel is a fixed one, as
        draws that are kept must come from.
        """
        keys = jax.random.split(rng_key, chains.loglikelihoods.shape[0])
        step = jax.vmap(self.step, in_axes=(0, 0, None, None))
        return *step(keys, chains, target, metric), metric


class SamplingAlgorithm(NamedTuple):
    """A pair of pure functions, as BlackJAX has it."""

    init: Callable
    step: Callable


@runtime_checkable
class Feed(Protocol):
    """What the compiled loop gets its subsamples from: a pytree with this method."""

    def subsample(self, rng_key: PRNGKey, iteration: Int[Array, ""], size: int) -> Rows:
        """Return ``size`` distinct rows, every row of the data equally likely."""
        ...

    def draw(
        self, rng_key: PRNGKey, iteration: Int[Array, ""], size: int
    ) -> tuple[Int[Array, " size"], Rows]:
        """Return the same rows, with their indices before them."""
        ...


@runtime_checkable
class DataSource(Protocol):
    """Where rows come from."""

    @property
    def num_rows(self) -> int:
        """Return N."""
        ...

    def take(self, indices: np.ndarray) -> Rows:
        """Return the rows at these indices, as host arrays."""
        ...

    def column(self, name: str) -> np.ndarray:
        """Return one column whole, for stratified selection."""
        ...

    def feed(self) -> Feed:
        """Return the subsampler for the compiled loop."""
        ...

    def abstract_feed(self) -> Feed:
        """Return the same with shapes in place of arrays, to compile before the data are moved."""
        ...

    def blocks(self, size: int) -> Iterator[tuple[int, Rows]]:
        """Run through all rows once: (first index, rows) of blocks, the last one shorter."""
        ...

    def check(self, model: Model) -> None:
        """Raise ``ValueError`` where the rows are not finite or not of the model's kind."""
        ...

    def fingerprint(self) -> dict[str, Any]:
        """Return what tells this data set from another, cheaply."""
        ...
