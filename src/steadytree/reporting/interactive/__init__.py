"""What the script of a report's page works with, as plain values."""
