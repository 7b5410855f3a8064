"""The benchmark: `python -m bench`, or ./scripts/bench. Ours against TransferQueue on one machine, judged on ratios.

`cases/` has what is measured; the other files have how. Everything measured runs in a process of its own; this process
only starts them and collects results.
"""
