"""Single decision trees that people can trust."""
