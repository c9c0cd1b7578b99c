"""`python -m predimem.cli`."""

from predimem.cli import main

if __name__ == "__main__":
    main()
