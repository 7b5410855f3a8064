"""How rows are found and described: selectors and pages, batch meta, changes of keys, why a claim waits."""
