"""Runs calls: the thread that owns the engine, the calls that wait, one journal append for each drain; replay."""
