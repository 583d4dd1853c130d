"""Risk scores with small integer points."""
