"""What a forked child must not do to its parent."""

import os
import weakref


def keep_in_children(thing: object) -> None:
    """A forked child will never finalise its copy of `thing`, which holds sockets or a loop of its parent's.

    Both share one epoll set. Finalised in the child, the copy would take its sockets out of that set, and the parent
    would wait for them for ever. The parent itself keeps no reference.
    """
    kept: list[object] = []
    born = weakref.ref(thing)
    if hasattr(os, "register_at_fork"):  # there is no fork on Windows
        os.register_at_fork(after_in_child=lambda: kept.append(born()))
