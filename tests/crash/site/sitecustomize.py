"""Python takes this at its start, wherever this folder is on its path: a server's, and of what a server starts."""

import os

from tests.crash.failpoints import install

install(os.environ)
