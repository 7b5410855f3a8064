"""One GRPO step on a real service and a real storage backend, from the trainer's put to the last delete.

Everything here is a user of the service: it imports the client and never `app` or `core`.
"""
