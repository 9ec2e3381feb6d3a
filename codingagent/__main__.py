"""`python -m codingagent`, and the console script."""

import gc
import os
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


def _leave_current_folder() -> None:
    """Look for no module in the current folder, as `-m` does first: a file there may be called like one."""
    # Nothing may be imported before this but what Python has loaded itself.
    try:
        if sys.path[0] == os.getcwd():  # noqa: PTH109
            del sys.path[0]
    except OSError:
        pass  # the folder is gone


if __name__ == "__main__":
    _leave_current_folder()
    main()
