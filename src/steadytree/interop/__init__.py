"""Trees to and from scikit-learn and files, and tables from files."""
