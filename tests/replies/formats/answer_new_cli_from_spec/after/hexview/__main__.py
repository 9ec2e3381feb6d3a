import argparse
import sys

from .core import dump


def non_negative(value):
    number = int(value)
    if number < 0:
        raise argparse.ArgumentTypeError(f"must not be negative: {value}")
    return number


def build_parser():
    parser = argparse.ArgumentParser(prog="hexview")
    parser.add_argument("-n", dest="count", metavar="COUNT", type=non_negative,
                        help="number of bytes to show")
    parser.add_argument("-s", dest="skip", metavar="SKIP", type=non_negative, default=0,
                        help="number of bytes to skip")
    parser.add_argument("--color", action="store_true", help="dim zero bytes")
    parser.add_argument("file", metavar="FILE", help="file to read, - for stdin")
    return parser


def read_input(name, skip, count):
    if name == "-":
        data = sys.stdin.buffer.read()
        return data[skip:] if count is None else data[skip:skip + count]
    with open(name, "rb") as file:
        file.seek(skip)
        return file.read(-1 if count is None else count)


def main(argv=None):
    args = build_parser().parse_args(argv)
    try:
        data = read_input(args.file, args.skip, args.count)
    except OSError as error:
        print(f"hexview: {error}", file=sys.stderr)
        return 1
    for line in dump(data, args.skip, args.color):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
