"""The state as bytes, and back: what snapshots and checkpoints hold, and what a restore never takes back."""
