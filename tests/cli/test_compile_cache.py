"""Compiled programs are kept in the user's cache folder, unless told otherwise."""

import subprocess
import sys

import pytest

from coremcmc import compile_cache

PRINT = (
    "import os; from coremcmc.compile_cache import keep_compiled_programs as keep; {before}; "
    "keep(); print(os.environ.get('JAX_COMPILATION_CACHE_DIR'))"
)


def chosen(tmp_path, before="", **environment):
    done = subprocess.run(
        [sys.executable, "-c", PRINT.format(before=before or "pass")],
        capture_output=True, text=True, check=True,
        env={"PATH": "", "HOME": str(tmp_path), **environment},
    )  # fmt: skip
    return done.stdout.strip()


def test_the_folder_is_the_users_cache(tmp_path):
    assert chosen(tmp_path).startswith(str(tmp_path / ".cache" / "coremcmc" / "jax-"))
    elsewhere = tmp_path / "xdg"
    found = chosen(tmp_path, XDG_CACHE_HOME=str(elsewhere))
    assert found.startswith(str(elsewhere / "coremcmc"))


def test_the_users_own_choice_stands(tmp_path):
    assert chosen(tmp_path, JAX_COMPILATION_CACHE_DIR="/my/own") == "/my/own"
    assert chosen(tmp_path, before="import jax") == "None"


def test_a_session_that_has_begun_keeps_what_it_compiles_from_then_on(tmp_path):
    script = (
        "import jax, coremcmc; jax.jit(lambda x: x + 1)(1.0); "
        "folder = coremcmc.keep_compiled_programs(); assert not list(folder.iterdir()); "
        "jax.jit(lambda x: x + 2)(1.0); assert coremcmc.keep_compiled_programs() == folder; "
        "print(*(p.name for p in folder.iterdir()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True, text=True, check=True, env={"PATH": "", "HOME": str(tmp_path)},
    )  # fmt: skip
    assert "lambda" in done.stdout


def test_without_a_place_to_write_nothing_is_kept(tmp_path):
    (tmp_path / "file").touch()
    assert chosen(tmp_path, XDG_CACHE_HOME=str(tmp_path / "file")) == "None"


def test_a_large_cache_loses_its_oldest_entries(tmp_path):
    import os

    for age in range(10):
        path = tmp_path / f"program-{age}"
        path.write_bytes(b"x" * 200)
        os.utime(path, (1e9 - age, 1e9 - age))
    compile_cache._prune(tmp_path, 1000)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["program-0", "program-1"]
    compile_cache._prune(tmp_path, 1000)
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("text", ["flags : fma avx2", "flags : avx512f"])
def test_processors_of_another_kind_have_a_folder_of_their_own(text, monkeypatch):
    ours = compile_cache._machine()
    monkeypatch.setattr("pathlib.Path.read_text", lambda self: text)
    assert compile_cache._machine() != ours
