"""Compiled loops of stability."""
