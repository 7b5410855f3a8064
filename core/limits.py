"""Limits of a call and of a partition."""

MAX_FIELDS = 4096  # of a partition
MAX_ROWS = 65_536  # that a call names, or a reply describes
