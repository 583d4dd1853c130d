"""The exact search for robust trees."""
