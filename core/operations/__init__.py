"""One function per operation of the contract, named by its verb; the engine is its first argument.

An operation that raises Refused has changed nothing.
"""
