"""Secrets of files whose form says where they are: netrc, pgpass, htpasswd, manifests of Kubernetes."""

import re
from collections.abc import Iterator

from codingagent.secrets import values
from codingagent.secrets.files import is_secret_file

# The end of a path, and the expression whose group 1 is a secret.
_BY_PATH = (
    ("[._]netrc|authinfo", r"\bpassw(?:or)?d[ \t]+\"?([^\s\"]{1,500})"),
    (
        r"pgpass(?:\.conf)?",
        r"^(?:[^#\n:\\]|\\.){0,200}(?::(?:[^\n:\\]|\\.){0,200}){3}:([^\n\r]{1,500})",
    ),
    ("npmrc", r"^[^#;\n=]{0,300}_(?:auth|password|authToken)[ \t]*=[ \t]*\"?([^\s\"]{4,500})"),
    (r"\w*passwd|shadow[-~]?", r"^[^:#\s]{1,100}:([^:\s*!]{4,500})"),
    (
        r"docker/config\.json|dockercfg|dockerconfigjson",
        r"\"(?:auth|identitytoken|password)\"\s{0,9}:\s{0,9}\"([^\"\n]{4,5000})",
    ),
    (
        "kube/config|kubeconfig",
        r"^[ \t-]*(?:token|password|client-key-data)[ \t]*:[ \t]*\"?([^\s\"]{4,8000})",
    ),
    (
        "git-credentials|git/config|gitconfig|gitmodules",
        r"://[^\s:]{0,200}:([^\s]{1,500})@[^\s@/]{1,200}",
    ),
)
_MANIFEST = re.compile(r"^kind:[ \t]*[\"']?Secret\b", re.MULTILINE)
_ENTRIES = re.compile(r"^(?P<indent>[ ]{0,20})(?:data|stringData):[ \t]*\r?\n", re.MULTILINE)
_ENTRY = re.compile(
    r"[ ]+[\w.-]{1,100}:[ \t]+[\"']?([^\s\"'|>#][^\n\"'#]{2,5000}?)[\"']?[ \t]*\r?(?:\n|$)"
)


def spans(text: str, path: str) -> Iterator[tuple[int, int, str]]:
    """Yield the start, end and kind of the secrets that the form of a file shows."""
    name = path.replace("\\", "/").casefold()
    for end, line in _BY_PATH:
        if name and re.search(rf"(?:^|[/._])(?:{end})$", name):
            for match in re.finditer(line, text, re.MULTILINE):
                if not values.is_reference(match[1]) or match[1].isalnum():
                    yield match.start(1), match.end(1), "PASSWORD"
    bare = text.strip()
    if 8 <= len(bare) <= 5000 and len(bare.split()) == 1 and name and is_secret_file(name):
        start = text.index(bare)
        if "=" not in bare.rstrip("=") and not values.is_reference(bare):
            yield start, start + len(bare), "SECRET"
    if _MANIFEST.search(text):
        for entries in _ENTRIES.finditer(text):
            at = entries.end()
            while entry := _ENTRY.match(text, at):
                if not values.is_reference(entry[1]) and not values.is_example(entry[1]):
                    yield entry.start(1), entry.end(1), "SECRET"
                at = entry.end()
