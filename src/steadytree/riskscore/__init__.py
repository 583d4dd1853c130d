"""Scorecards of small integer points."""
