"""The benchmark: `python -m bench`, or ./scripts/bench. Ours against TransferQueue on one machine, judged on ratios.

`cases/` says what is measured; all else is how. What is measured runs in processes of its own; this one only conducts.
"""
