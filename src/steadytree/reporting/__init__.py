"""Text, pages and pictures."""
