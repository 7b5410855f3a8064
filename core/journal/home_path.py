"""Expands `~` (the home of the user who runs this) and `~name` (the home of that user) in a path."""

from pathlib import Path


def at_home(path: str) -> str:
    """The path with its `~` replaced. Raises ValueError for an unknown user."""
    user, slash, rest = path.partition("/")
    if not user.startswith("~"):
        return path
    try:
        return f"{Path(user).expanduser()}{slash}{rest}"
    except RuntimeError as error:
        raise ValueError(
            f"no home is known for {user}: write the folder out, or ./{user} for one of that name"
        ) from error
