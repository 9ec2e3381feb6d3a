"""`python -m codingagent`, and the console script."""

import sys


def main() -> None:
    """Run the command line; a Ctrl-C while it is being imported is no fault either."""
    try:
        from codingagent.cli import main as cli

        cli.main()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
