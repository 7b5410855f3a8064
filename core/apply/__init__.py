"""What each event does to the state. Replay and live calls share this code, so it makes no choice.

One table names the function of each event: `function(state, event)`. A function finds rows, moves bits and counts; it
cannot fail, since whatever can be wrong with a call was found before its events were made.
"""

from .table import apply
from .together import apply_alike

__all__ = ["apply", "apply_alike"]
