#!/usr/bin/env python3
"""Verify people.csv: five fields per row, ISO dates, no duplicates."""
import csv
import sys
from datetime import datetime

FIELDS = 5


def check(path):
    problems = []
    seen = {}
    with open(path, newline="", encoding="utf-8") as f:
        reader = csv.reader(f, delimiter=";")
        next(reader)  # header
        for row in reader:
            line = reader.line_num
            if len(row) != FIELDS:
                problems.append(f"line {line}: expected {FIELDS} fields, got {len(row)}")
                continue
            born = row[3]
            if born:
                try:
                    if datetime.strptime(born, "%Y-%m-%d").strftime("%Y-%m-%d") != born:
                        raise ValueError
                except ValueError:
                    problems.append(f"line {line}: not an ISO date: {born!r}")
            key = tuple(row)
            if key in seen:
                problems.append(f"line {line}: duplicate of line {seen[key]}")
            elif any(row[0] == other[0] for other in seen):
                problems.append(f"line {line}: id {row[0]} used twice")
            seen.setdefault(key, line)
    return problems


if __name__ == "__main__":
    path = sys.argv[1] if len(sys.argv) > 1 else "people.csv"
    problems = check(path)
    for problem in problems:
        print(problem)
    print("OK" if not problems else f"{len(problems)} problem(s)")
    sys.exit(bool(problems))
