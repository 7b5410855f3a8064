"""Turns a write into events: checks what the caller sent, and changes nothing before commit."""
