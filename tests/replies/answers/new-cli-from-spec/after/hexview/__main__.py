"""The command line: python -m hexview"""
import argparse
import os
import sys

from hexview.core import lines, read


def size(text):
    number = int(text, 0)
    if number < 0:
        raise ValueError(text)
    return number


def main(argv=None):
    parser = argparse.ArgumentParser(prog="hexview", description="Show bytes as hex and text.")
    parser.add_argument("-n", metavar="COUNT", type=size, help="show COUNT bytes at most")
    parser.add_argument("-s", metavar="SKIP", type=size, default=0, help="skip SKIP bytes first")
    parser.add_argument("--color", action="store_true", help="dim the zeros")
    parser.add_argument("file", metavar="FILE", help="the file, or - for stdin")
    args = parser.parse_args(argv)
    try:
        if args.file == "-":
            data = read(sys.stdin.buffer, args.s, args.n)
        else:
            with open(args.file, "rb") as stream:
                data = read(stream, args.s, args.n)
    except OSError as error:
        print(f"hexview: {args.file}: {error.strerror or error}", file=sys.stderr)
        return 1
    try:
        for line in lines(data, args.s, args.color):
            print(line)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


if __name__ == "__main__":
    sys.exit(main())
