"""Exact search for robust trees, and the mixed-integer model it is checked against."""
