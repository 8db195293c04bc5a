"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["AsJson", "Quiet", "Run", "Seed"]

Run = Annotated[Path, typer.Argument(help="Folder of the run.", metavar="RUN")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON object on stdout, and nothing else there.")
]
Seed = Annotated[int, typer.Option(help="Same seed, same answer.")]
