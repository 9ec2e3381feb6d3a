"""`python -m codingagent`, and the console script."""

import gc
import sys

# What is imported stays; to look for garbage in it again and again is a fifteenth of every start.
_OBJECTS_BETWEEN_LOOKS = 50_000


def main() -> None:
    """Runs the command line; a Ctrl-C while it is being imported is no fault either."""
    gc.set_threshold(_OBJECTS_BETWEEN_LOOKS)
    try:
        from codingagent.faces import cli

        cli.main()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
