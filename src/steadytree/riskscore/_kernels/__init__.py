"""Compiled loops of risk scores."""
