"""What users of TransferQueue do, as flows that run on its own controller and on batchmeta, and must see the same.

table.py   the flows by name, and the configuration that each of them needs
child.py   runs them: a process of a venv that has TransferQueue and our client, at the end of a pipe
log.py     what a flow saw, step by step, as plain values
"""
