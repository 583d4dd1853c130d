"""Findings: what the figures of a report mean, and the figures that only they need."""
