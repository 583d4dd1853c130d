"""What a user hands over, made into arrays; and where class counts come from."""
