"""Outline a file by the grammar of its language, where `codingagent[outlines]` brought one.

One rule for all grammars: a node that has a body and a name is a definition, and its outline is its text up
to its body. A name or a left side without a body counts where its line is not indented.
"""

import functools
import importlib
from typing import TYPE_CHECKING

from codingagent.context.lines import LineSpan
from codingagent.model.patterns import lazy_pattern

if TYPE_CHECKING:
    from tree_sitter import Language, Node

# By the end of a file's name: a package, and the function in it that returns the grammar.
_GRAMMARS = {
    "py pyi": "tree_sitter_python.language",
    "js mjs cjs jsx": "tree_sitter_javascript.language",
    "ts mts cts": "tree_sitter_typescript.language_typescript",
    "tsx": "tree_sitter_typescript.language_tsx",
    "go": "tree_sitter_go.language",
    "rs": "tree_sitter_rust.language",
    "java": "tree_sitter_java.language",
    "c h": "tree_sitter_c.language",
    "cc cpp cxx hpp hh": "tree_sitter_cpp.language",
    "rb": "tree_sitter_ruby.language",
    "php": "tree_sitter_php.language_php",
    "cs": "tree_sitter_c_sharp.language",
}
# What a definition is called: `type` is that of an `impl`, `declarator` that of a function of C.
_NAMES = ("name", "declarator", "type")
_PATTERNS = ("(_ body: (_)) @found", "(_ name: (_)) @found", "(_ left: (_)) @found")
# These have names too, and some of them bodies.
_NO_DEFINITION = lazy_pattern(
    "import|scoped|qualified|for_|foreach|loop|while|catch|range|parameter|argument"
)


def definitions(path: str, text: str) -> list[LineSpan] | None:
    """Return the lines of each definition up to its body; None where there is no grammar for the file."""
    if (language := _language(path.rpartition(".")[2].lower())) is None:
        return None
    from tree_sitter import Parser, Query, QueryCursor

    known = [each for each in _PATTERNS if language.field_id_for_name(each.split()[1].rstrip(":"))]
    tree = Parser(language).parse(text.encode("utf-8", "replace"))
    found = QueryCursor(Query(language, "\n".join(known))).captures(tree.root_node).get("found", [])
    lines = text.split("\n")
    spans = (_span(node, lines) for node in found if not _NO_DEFINITION.search(node.type))
    return sorted({span for span in spans if span is not None})


def _span(node: "Node", lines: list[str]) -> LineSpan | None:
    first = node.start_point.row
    body = node.child_by_field_name("body")
    if body is None:
        is_outermost = lines[first][:1].strip() != ""
        return LineSpan(first + 1, first + 1) if is_outermost else None
    if not any(node.child_by_field_name(name) for name in _NAMES):
        return None
    row = body.start_point.row
    begins_line = not lines[row].encode()[: body.start_point.column].strip()
    return LineSpan(first + 1, max(first + 1, row if begins_line else row + 1))


@functools.cache
def _language(suffix: str) -> "Language | None":
    for suffixes, place in _GRAMMARS.items():
        if suffix in suffixes.split():
            package, _, function = place.rpartition(".")
            try:
                module = importlib.import_module(package)
            except ImportError:
                return None
            from tree_sitter import Language

            return Language(getattr(module, function)())
    return None
