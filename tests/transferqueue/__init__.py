"""TransferQueue on batchmeta: its users' code, run on its own controller and on ours."""
