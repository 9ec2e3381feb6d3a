"""`python -m codingagent`, and the console script."""

import gc
import sys


def main() -> None:
    """Run the command line; a Ctrl-C while it is being imported is no fault either."""
    # What a start makes, stays: to look through it for what is unused takes a thirtieth of the time.
    gc.set_threshold(100_000, 50, 100)
    try:
        from codingagent.cli import main as cli

        cli.main()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    if not sys.flags.safe_path:
        # The current folder: what is there may be called as a module that is imported later.
        del sys.path[0]
    main()
