"""Lets ``python -m steadytree`` be the command line."""

from steadytree.cli.app import main

if __name__ == "__main__":
    main()
