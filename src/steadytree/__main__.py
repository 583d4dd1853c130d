"""Lets ``python -m steadytree`` be the command line."""

from steadytree.cli import main

if __name__ == "__main__":
    main()
