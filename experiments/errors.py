"""What a user did wrong, in one line."""

__all__ = ["StudyError"]


class StudyError(Exception):
    """Bad input. The commands print its message, without a traceback, and exit with status 2."""
