"""A figure: a drawing with a title and a caption that says how to read it."""

from dataclasses import dataclass

__all__ = ["Figure"]


@dataclass(frozen=True)
class Figure:
    """What the template sets.

    Attributes
    ----------
    title
        What is shown.
    drawings
        One drawing, or several small ones, as SVG.
    caption
        How to read it, and what would be bad.
    key
        Kinds of marks and what they mean: (class of the mark, words).
    """

    title: str
    drawings: tuple[str, ...]
    caption: str
    key: tuple[tuple[str, str], ...] = ()
