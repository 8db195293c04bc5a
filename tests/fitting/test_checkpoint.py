"""Archives: what is written is read again, and what is not ours is refused in one line."""

import json

import numpy as np
import pytest

from coremcmc.fitting.checkpoint import read_archive, write_archive


def test_what_was_written_is_read_again(tmp_path):
    write_archive(tmp_path / "a.npz", {"n": 3}, {"x": np.arange(4.0)})
    meta, arrays = read_archive(tmp_path / "a.npz")
    assert meta == {"format": "coremcmc-2", "n": 3}
    assert list(arrays) == ["x"]
    np.testing.assert_array_equal(arrays["x"], np.arange(4.0))


def test_the_format_of_before_is_refused_with_both_numbers(tmp_path):
    meta = np.frombuffer(json.dumps({"format": "coremcmc-1"}).encode(), np.uint8)
    np.savez(tmp_path / "old.npz", **{"meta.json": meta, "x": np.zeros(2)})
    with pytest.raises(ValueError, match="'coremcmc-1'; this version reads 'coremcmc-2'") as error:
        read_archive(tmp_path / "old.npz")
    assert "\n" not in str(error.value)
