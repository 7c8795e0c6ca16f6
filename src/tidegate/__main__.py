"""`python -m tidegate`: the same as the command `tidegate`."""

from tidegate.cli import main

if __name__ == "__main__":
    main()
