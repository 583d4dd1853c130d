"""Differential privacy: noise, budgets, and trees learned under them."""
