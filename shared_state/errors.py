"""Errors a person can act on: the command line prints them as one line and exits with status 2."""


class AgoraError(Exception):
    """Bad input. The message names the file, line or field and says what was expected."""
