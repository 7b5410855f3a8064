"""How a pickled HttpServerInfo is loaded. Ray pickles this by value: it runs where batchmeta is missing."""

from typing import Any


def load(state: tuple[Any, ...]) -> Any:
    """The info. ModuleNotFoundError that says what to do in a worker without batchmeta."""
    try:
        from batchmeta.transferqueue.seam import revive
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"this run's TransferQueue is on batchmeta ({state[0]}), and this worker cannot import it ({error}): "
            "install the batchmeta client in its environment, for example by Ray's runtime_env={'pip': [its wheel]}, "
            "or unset BATCHMETA_URL where the run starts"
        ) from error
    return revive(*state)
