import sys

from formats import table
from legacy import old_format


def main(args):
    rows = [line.rstrip("\n").split("\t") for line in sys.stdin]
    print(old_format(rows) if "--compact" in args else table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
