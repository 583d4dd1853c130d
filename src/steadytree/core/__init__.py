"""What things are: trees, the columns they ask about, and the counts they are grown from."""
