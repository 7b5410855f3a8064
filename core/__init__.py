"""The engine: which samples x fields are produced, who took what, where each cell lies. No HTTP, no environment."""
