"""Checks of the adapter that run under an interpreter with TransferQueue: see run.py. Nothing of pytest is here."""
