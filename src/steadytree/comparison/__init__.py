"""Learners side by side on the same folds."""
