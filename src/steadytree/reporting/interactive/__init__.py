"""What the script of a report's page works with, and what notebooks show."""
