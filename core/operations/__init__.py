"""One function per operation of the contract, named by its verb; the engine comes first. Refused: nothing changed."""
