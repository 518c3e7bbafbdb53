"""`python -m whatif`."""

from whatif.cli.main import main

if __name__ == "__main__":
    main()
