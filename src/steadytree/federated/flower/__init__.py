"""A study over Flower."""
