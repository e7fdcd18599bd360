"""Errors a person can act on: the command line prints them as one line and exits with status 2."""


class AgoraError(Exception):
    """Bad input. The message names the file, line or field and says what was expected."""


def printable(text: str) -> str:
    """The text with escapes in place of characters that a terminal may act on, or not print."""
    return "".join(
        character if character.isprintable() else repr(character)[1:-1] for character in text
    )
