"""Checks people.csv: five fields a row, ISO dates, no duplicates."""
import csv
import datetime
import re
import sys

FIELDS = ["id", "name", "city", "born", "note"]
ISO = re.compile(r"\d{4}-\d{2}-\d{2}")


def is_iso(text):
    if not ISO.fullmatch(text):
        return False
    try:
        datetime.date.fromisoformat(text)
    except ValueError:
        return False
    return True


def check(path):
    errors, warnings, seen = [], [], {}
    with open(path, encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, delimiter=";", strict=True)
        if next(reader, None) != FIELDS:
            errors.append(f"line 1: the header is not {';'.join(FIELDS)}")
        for row in reader:
            where = f"line {reader.line_num}"
            if len(row) != len(FIELDS):
                errors.append(f"{where}: {len(row)} fields, not {len(FIELDS)}")
                continue
            number, born = row[0], row[3]
            if not born:
                warnings.append(f"{where}: id {number} has no date")
            elif not is_iso(born):
                errors.append(f"{where}: {born!r} is not an ISO date")
            if number in seen:
                errors.append(f"{where}: id {number} is in {seen[number]} already")
            seen.setdefault(number, where)
    return len(seen), errors, warnings


def main(args):
    path = args[0] if args else "people.csv"
    count, errors, warnings = check(path)
    for text in warnings:
        print("warning:", text)
    for text in errors:
        print("error:", text)
    print(f"{path}: {count} people, {len(errors)} errors, {len(warnings)} warnings")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
