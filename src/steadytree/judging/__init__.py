"""Learners and measures brought together: comparisons, limits, what a report needs to know."""
