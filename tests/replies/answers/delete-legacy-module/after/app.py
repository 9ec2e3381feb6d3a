import sys

from formats import compact, table


def main(args):
    rows = [line.rstrip("\n").split("\t") for line in sys.stdin]
    print(compact(rows) if "--compact" in args else table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
