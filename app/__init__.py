"""The HTTP edge of batchmeta: decode, hand to the engine's thread, send the bytes. No state of samples lives here."""
