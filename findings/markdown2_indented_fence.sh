#!/bin/sh
# markdown2 2.5.5 with `fenced-code-blocks`: a fence inside of code, indented as in a docstring.
#
# CommonMark (4.5): a closing fence is indented by at most three blanks; the inner one is a line of code.
# Expected: one code block of five lines, as Python-Markdown gives.
# Seen: the indented line ends the block and is dropped, the code behind it is a block of its own without its
# indentation, and the true closing fence is a paragraph.
#
# Ends with 0 while that is so, else with 1.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check markdown2==2.5.5 markdown==3.11.3
"$folder/venv/bin/python" - <<'P'
import sys

import markdown
import markdown2

TEXT = '''```
def f():
    """
    ```
    f()
    """
```

behind
'''
found = markdown2.markdown(TEXT, extras=["fenced-code-blocks"])
peer = markdown.markdown(TEXT, extensions=["fenced_code"])
print(found)
code = found.partition("</code>")[0]
sys.exit(not ("f()\n" in peer.partition("</code>")[0] and "    f()" not in code))
P
