"""Rows that are left out, and retraining."""
