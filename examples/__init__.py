"""What users of the service write: a training, and workers in other languages."""
