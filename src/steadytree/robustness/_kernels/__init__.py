"""Compiled loops of robustness."""
