import sys

import inflection

FUNCTIONS = [
    "acronym",
    "camelize",
    "dasherize",
    "humanize",
    "ordinal",
    "ordinalize",
    "parameterize",
    "pluralize",
    "singularize",
    "tableize",
    "titleize",
    "transliterate",
    "underscore",
]


def main():
    if len(sys.argv) < 2 or sys.argv[1] not in FUNCTIONS:
        print("Unknown function. Available functions:", file=sys.stderr)
        for name in FUNCTIONS:
            print("  " + name, file=sys.stderr)
        sys.exit(2)

    function = getattr(inflection, sys.argv[1])
    for word in sys.argv[2:]:
        print(function(word))


if __name__ == "__main__":
    main()
