"""Paths as a person writes them: `~` is the home of who runs this, `~name` that user's."""

from pathlib import Path


def at_home(path: str) -> str:
    """The path with its `~` replaced. Raises ValueError for a user that there is not."""
    user, slash, rest = path.partition("/")
    if not user.startswith("~"):
        return path
    try:
        return f"{Path(user).expanduser()}{slash}{rest}"
    except RuntimeError as error:
        raise ValueError(
            f"no home is known for {user}: write the folder out, or ./{user} for one of that name"
        ) from error
