"""All that the service knows, as arrays: partitions, rows, groups, tasks, leases, clears, key history.

Nothing here decides or refuses. Only `core.apply` changes it, and only by events.
"""
