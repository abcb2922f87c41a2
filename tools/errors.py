"""The error that people are meant to read: printed without a traceback."""


class BuildError(Exception):
    """What went wrong, where (file:line or cell label), and what to do about it."""
