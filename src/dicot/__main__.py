"""`python -m dicot` is the command line too."""

from dicot.cli import main

if __name__ == "__main__":
    main()
