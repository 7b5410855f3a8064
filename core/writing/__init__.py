"""How a write is decided: what the caller sent is checked, and becomes events. Nothing changes before commit."""
