"""A GRPO training that learns: a small transformer sorts digits, trained by processes that only the service joins.

Rollout, reference, reward and trainer know the service and a storage backend, never each other. It is a user of the
service: it imports the client and `crew`, never `app` or `core`. How to run it: docs/how-to/train.md
"""
