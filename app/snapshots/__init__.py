"""Makes snapshots and checkpoints while the service runs: the service orders them, a process beside it writes them."""
