"""What a task can take: sets of rows kept up to date as rows become ready. Derived from the rest of the state."""
