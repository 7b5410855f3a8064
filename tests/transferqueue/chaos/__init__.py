"""A job of TransferQueue's users on batchmeta, under Ray, while its processes are killed.

job.py       the job: rollout workers, storage units, a driver that trains; it kills its own
child.py     the job at the end of a pipe, in a venv that has TransferQueue and our client
service.py   the service on one journal and one port, started again each time it dies
"""
