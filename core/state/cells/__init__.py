"""Samples x fields of one partition: which cells are produced, their shapes, and their backend meta as JSON bytes."""
