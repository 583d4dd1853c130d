"""Forests and boosted trees as flat arrays."""
