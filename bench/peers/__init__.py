"""The systems to compare with: each peer in a venv and a process of its own, at the end of a pipe."""
