"""Where class counts come from."""
