"""Numbers about any model."""
