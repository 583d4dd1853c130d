"""How far two trees are apart, and what changed between them."""
