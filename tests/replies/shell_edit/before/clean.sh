#!/bin/sh
set -eu

for f in *.txt; do
  [ -f "$f" ] || continue
  sed -e 's/\t/ /g' "$f" > "$f.new" && mv "$f.new" "$f"
done
