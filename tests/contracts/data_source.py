"""What every data source must keep. Its test class inherits :class:`DataSourceContract`."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from coremcmc import FunctionModel, LinearRegression

N, S, DRAWS = 23, 7, 4_000
FALSE_ALARM = 1e-4  # of each of the statistical tests, at other seeds


def rows_of(num_rows=N):
    """Row n can be told from its content."""
    n = np.arange(num_rows)
    return {"x": np.stack([n, -2.0 * n], axis=1), "y": (n % 5).astype(np.int32)}


class DataSourceContract:
    """Override :meth:`make`: a source of the given rows, a mapping of arrays."""

    @staticmethod
    def make(rows):
        raise NotImplementedError

    @pytest.fixture
    def source(self):
        return self.make(rows_of())

    @pytest.fixture(scope="class")
    @classmethod
    def drawn(cls):
        """Indices of many subsamples, an iteration each."""
        with jax.enable_x64(True):
            feed, key = cls.make(rows_of()).feed(), jax.random.key(1)
            keys = jax.random.split(key, DRAWS)
            draw = jax.vmap(lambda k, i: feed.draw(k, i, S)[0])
            return np.asarray(jax.jit(draw)(keys, jnp.arange(DRAWS)))

    @pytest.mark.parametrize("num_rows", [1, 2, N])
    def test_it_knows_how_many_rows_there_are(self, num_rows):
        assert self.make(rows_of(num_rows)).num_rows == num_rows

    def test_rows_are_taken_by_their_numbers(self, source):
        chosen = np.array([5, 0, N - 1, 5])
        taken = source.take(chosen)
        for name, column in rows_of().items():
            assert isinstance(taken[name], np.ndarray)
            assert taken[name].dtype == column.dtype
            np.testing.assert_array_equal(taken[name], column[chosen])

    @pytest.mark.parametrize("size", [1, 4, N - 1, N, 10 * N])
    def test_blocks_cover_every_row_once_and_in_order(self, source, size):
        starts, blocks = zip(*source.blocks(size), strict=True)
        lengths = [len(block["y"]) for block in blocks]
        assert list(starts) == list(range(0, N, size))
        assert lengths == [min(size, N - start) for start in starts]
        for name, column in rows_of().items():
            whole = np.concatenate([block[name] for block in blocks])
            np.testing.assert_array_equal(whole, column)

    def test_a_column_is_there_whole(self, source):
        np.testing.assert_array_equal(source.column("y"), rows_of()["y"])
        with pytest.raises(ValueError, match="'nowhere'"):
            source.column("nowhere")

    @pytest.mark.parametrize("size", [1, S, N])
    def test_a_subsample_is_of_distinct_rows(self, source, size):
        feed, key = source.feed(), jax.random.key(3)
        indices, rows = jax.jit(feed.draw, static_argnums=2)(key, jnp.asarray(2), size)
        alone = feed.subsample(key, jnp.asarray(2), size)
        assert len(np.unique(indices)) == size
        assert (np.asarray(indices) >= 0).all()
        assert (np.asarray(indices) < N).all()
        for name, column in rows_of().items():
            np.testing.assert_array_equal(rows[name], column[np.asarray(indices)])
            np.testing.assert_array_equal(alone[name], rows[name])

    @pytest.mark.statistical
    def test_every_row_is_as_likely_as_another(self, drawn):
        share = S / N
        counts = np.bincount(drawn.ravel(), minlength=N)
        errors = (counts - DRAWS * share) / np.sqrt(DRAWS * share * (1 - share))
        assert np.abs(errors).max() < stats.norm.isf(FALSE_ALARM / (2 * N))

    @pytest.mark.statistical
    def test_every_pair_of_rows_is_as_likely_as_another(self, drawn):
        share = S * (S - 1) / (N * (N - 1))
        is_in = np.zeros((DRAWS, N))
        is_in[np.arange(DRAWS)[:, None], drawn] = 1.0
        pairs = (is_in.T @ is_in)[np.triu_indices(N, 1)]
        errors = (pairs - DRAWS * share) / np.sqrt(DRAWS * share * (1 - share))
        assert np.abs(errors).max() < stats.norm.isf(FALSE_ALARM / (2 * len(pairs)))

    @pytest.mark.statistical
    def test_the_next_subsample_does_not_depend_on_the_last(self, drawn):
        shared = np.array([len(np.intersect1d(*two)) for two in itertools.pairwise(drawn)])
        law = stats.hypergeom(N, S, S)
        error = (shared.mean() - law.mean()) / np.sqrt(law.var() / len(shared))
        assert abs(error) < stats.norm.isf(FALSE_ALARM / 2)

    def test_shapes_are_told_before_rows_are_moved(self, source):
        feed, abstract = source.feed(), source.abstract_feed()
        assert jax.tree.structure(feed) == jax.tree.structure(abstract)
        for there, told in zip(jax.tree.leaves(feed), jax.tree.leaves(abstract), strict=True):
            assert (there.shape, there.dtype) == (told.shape, told.dtype)

    def test_rows_that_are_not_finite_or_not_the_models_are_refused(self, source):
        assert source.check(LinearRegression()) is None
        bad = rows_of()
        bad["x"][17, 1] = np.nan
        with pytest.raises(ValueError, match="row 17"):
            self.make(bad).check(LinearRegression())
        with pytest.raises(ValueError, match="'y'"):
            self.make({"x": rows_of()["x"]}).check(LinearRegression())
        anything = FunctionModel(lambda p: p, lambda p, rows: rows["y"], lambda key: 0.0)
        assert source.check(anything) is None

    def test_the_fingerprint_is_that_of_the_rows(self, source):
        assert self.make(rows_of()).fingerprint() == source.fingerprint()
        for change in (
            lambda rows: rows["x"].__setitem__((9, 0), 0.5),
            lambda rows: rows.update(y=rows["y"].astype(np.int64)),
            lambda rows: rows.update({k: v[:-1] for k, v in rows.items()}),
        ):
            rows = rows_of()
            change(rows)
            assert self.make(rows).fingerprint() != source.fingerprint()
