"""What users of TransferQueue do, as flows that run on its own controller and on batchmeta, and must see the same.

table.py         the flows by name, and the configuration that each of them needs
basic.py …       the flows: basic, keyed, meta, awaited, sampled, streaming, checkpoints, grpo
log.py           what a flow saw, step by step, as plain values
child.py         runs them: a process of a venv that has TransferQueue and our client, at the end of a pipe
planes.py        our side of the pipe, one for each plane of a storage backend
differences.py   the steps that are not equal, and why ours is the better answer
"""
