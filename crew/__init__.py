"""Processes that work together on the service and a storage backend, and the account of what they did.

The demo and examples/grpo are made of it. It is a user of the service: it imports the client and never `app` or `core`.
"""
