"""The whole state as bytes, and back; the files of checkpoints."""
