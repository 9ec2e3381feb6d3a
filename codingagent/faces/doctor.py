"""What `doctor` prints: what this machine offers, one line each, with the remedy for what is missing."""

import sys
from dataclasses import asdict
from pathlib import Path

from codingagent.confinement import Finding, findings
from codingagent.faces.lines import write_json_line

_WORDS = {True: "ok", False: "MISSING", None: "-"}
_PROMISES = {True: "enforced", False: "NOT enforced", None: "does not apply"}


def examine(home: Path, workspace: Path, *, json: bool) -> None:
    """Prints what this machine offers.

    Args:
        home: lies outside of every sandbox, and is tried from inside one.
        workspace: the home's own.
        json: one object a line.
    """
    for finding in findings(home, workspace):
        if json:
            write_json_line(sys.stdout, asdict(finding))
        else:
            _print(finding)


def _print(finding: Finding) -> None:
    words = _PROMISES if finding.is_promise else _WORDS
    margin = "  " if finding.is_promise else ""
    remedy = f"; {finding.remedy}" if finding.remedy else ""
    sys.stdout.write(
        f"{margin}{words[finding.holds]:<14}{finding.name}: {finding.detail}{remedy}\n"
    )
    sys.stdout.flush()
