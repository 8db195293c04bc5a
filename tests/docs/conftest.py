"""The folder that the pages' code runs in."""

import pytest

from coremcmc.cli.commands.flights import flights_table

NUM_ROWS = 20_000


@pytest.fixture(scope="session")
def demo_output(tmp_path_factory):
    """What ``coremcmc demo`` leaves behind, with fewer rows."""
    folder = tmp_path_factory.mktemp("pages") / "demo-output"
    folder.mkdir()
    table = flights_table().sample(NUM_ROWS, random_state=0).reset_index(drop=True)
    table.to_parquet(folder / "flights.parquet", index=False)
    return folder


@pytest.fixture
def reader(demo_output, tmp_path, monkeypatch, capsys):
    """An empty folder with the demo's output in it, as the current one."""
    (tmp_path / "demo-output").symlink_to(demo_output, target_is_directory=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path
