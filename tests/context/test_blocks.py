"""Blocks by indentation and expression: definitions, members of classes, sections, keys."""

from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from codingagent.context.blocks import CodeBlock, blocks

# A file of each family, and the names of what it defines at its outermost level.
FILES = {
    "a.py": (
        (
            "import os\nLIMIT = 3\n\n@cache\nclass A:\n    async def f(self):\n        x = 1\n"
            "    def g(self): pass"
        ),
        ("LIMIT", "A"),
    ),
    "a.ts": (
        (
            "import x\nexport interface A {\n  b: 1\n}\nexport const f = (a) => {\n  if (a) {\n  }\n"
            "  g(a)\n}\nclass B {\n  private async run(a: string): Promise<void> {\n    return\n  }\n}"
        ),
        ("A", "f", "B"),
    ),
    "a.js": (
        "'use strict'\napp.use = function use(fn) {\n  for (;;) {\n  }\n}\nmodule.exports = app",
        ("app.use", "module.exports"),
    ),
    "a.go": (
        "package a\n\nfunc (c *Context) Next() {\n\tc.x++\n}\ntype A struct {\n\tB int\n}",
        ("Next", "A"),
    ),
    "a.rs": (
        "use x;\npub(crate) async fn f() {\n    let a = 1;\n}\nimpl A for B {\n    fn g(&self) {}\n}",
        ("f", "A"),
    ),
    "a.c": (
        (
            "#include <x.h>\n#define MAX(a) a\nstatic int f(int a)\n{\n  return g(a);\n}\n"
            "struct A {\n  int b;\n};"
        ),
        ("MAX", "f", "A"),
    ),
    "A.java": (
        (
            "package a;\npublic final class A {\n  private int x = 1;\n  public <T> T get(B b) {\n"
            "    return f(b);\n  }\n}"
        ),
        ("A",),
    ),
    "a.rb": ("require 'x'\nclass A\n  def f(a)\n    a.b\n  end\nend", ("A",)),
    "a.php": ("<?php\nclass A {\n  public function f($a) {\n    return $a;\n  }\n}", ("A",)),
    "a.h": (
        "#define X 1\nEXPORT int f(int a);\nstatic const struct t table[] = {\n  1,\n};\nreturn x;",
        ("X", "f", "table"),
    ),
    "b.go": ("const (\n\tOne = 1\n\tTwo\n)\nfunc f() {\n}", ("One", "Two", "f")),
    "a.kt": ("fun <T> List<T>.second(): T = this[1]\nclass A {\n}", ("second", "A")),
    "a.spec.ts": (
        'describe("a cart", () => {\n})\ntest.each([1])(`x`, f)\nit("is empty", () => {})',
        ("a cart", "is empty"),
    ),
    "a.css": (".a, .b {\n  x: 1;\n}\n@media print {\n}", (".a, .b ", "@media print ")),
    "a.html": ("{% block body %}\n{% endblock %}\n<form>\n</form>", ("body", "form")),
    "a.sh": ("set -e\nrun() {\n  x\n}", ("run",)),
    "b.c": ("int f(\n\tint a)\n{\n\t/*\n\t * so it is at most MOST (2 GB).\n\t */\n}", ("f",)),
    "a.md": ("# A\ntext\n## B\n#tag\n1.2 / May\n=========\n- x\n\n---", ("A", "B", "1.2 / May")),
    "a.yaml": ("a:\n  b: 1\n# c\nd: 2", ("a", "d")),
    "a.toml": ("x = 1\n[a]\nb = 1", ("a",)),
    "A.pm": (
        "package A::B;\n\n=method size\n\n=cut\n\nsub size {\n  1;\n}\nsub _get { 1 }\n\n=head1 NAME\n",
        ("A::B", "size", "size", "_get", "NAME"),
    ),
    "a.R": ("area <- function(x) {\n  y <- 1\n}\nkeep = function() 1\nz <- 2\n", ("area", "keep")),
    "a.jl": (
        "module M\nmutable struct P\n  x\nend\nfunction f!(x)\n  x\nend\ng(x) = 2x\ny = 1\nend\n",
        ("M", "P", "f!", "g"),
    ),
    "a.dart": ("class A {\n  int f(int x) {\n    return x;\n  }\n}\nvoid main() {\n}\n", ("A", "main")),
    "a.sql": (
        "-- x\nCREATE TABLE IF NOT EXISTS a.b (\n  id int\n);\ncreate or replace function f() returns int",
        ("a.b", "f"),
    ),
    "a.hs": ("module Main where\ndata T = A\nf :: Int\nf = 1\n", ("Main", "T", "f")),
    "a.clj": ("(ns a.b)\n\n(defn f [x]\n  (def y 1))\n(defmacro m [] 1)\n", ("a.b", "f", "m")),
    "a.ps1": ("param($x)\nfunction Get-It {\n  1\n}\n", ("Get-It",)),
    "a.proto": ("message A {\n  int32 x = 1;\n}\nservice S {\n  rpc Do(A) returns (A);\n}\n", ("A", "S")),
    "a.tf": ('resource "a_b" "c" {\n  x = 1\n}\nlocals {\n}\n', ('resource "a_b" "c"', "locals")),
    "a.ml": ("let rec f x =\n  let y = 1 in\n  y\ntype t = A\nmodule M = struct\nend\n", ("f", "t", "M")),
    "a.erl": ("-module(a).\n-record(r, {x}).\nf(X) ->\n  g(X).\n", ("a", "r", "f")),
    "a.zig": ("const std = 1;\npub fn main() !void {\n  const x = 1;\n}\n", ("std", "main")),
    "a.unknown": ("def f():\n    pass", ()),
}


def test_each_family_names_what_it_defines() -> None:
    for path, (text, names) in FILES.items():
        outermost = [each.names for each in blocks(path, text) if not each.around[:-1]]
        assert tuple(filter(None, chain(*outermost))) == names, path


def test_a_block_begins_with_what_belongs_to_its_definition() -> None:
    """Decorators and comments before a definition are shown with it, also a decorator of several lines."""
    lines = [
        "import os",
        "",
        "# Why",
        "@cache(",
        "    1,",
        ")",
        "def f():",
        *["    pass"] * 20,
        "",
        "def g():",
    ]
    assert blocks("a.py", "\n".join([*lines, ""])) == [
        CodeBlock(1, 2),
        CodeBlock(3, 28, ("f",), (7,)),
        CodeBlock(29, 29, ("g",), (29,)),
    ]


def test_a_class_is_cut_into_its_members_and_a_function_is_not() -> None:
    """A member knows the line of its class; what a function defines inside is a part of it."""
    lines = [
        "class A:",
        "    def f(self):",
        "        def inner(): ...",
        *["        pass"] * 20,
        "    def g(self):",
    ]
    assert blocks("a.py", "\n".join([*lines, ""])) == [
        CodeBlock(1, 1, ("A",), (1,)),
        CodeBlock(2, 23, ("f",), (1, 2)),
        CodeBlock(24, 24, ("g",), (1, 24)),
    ]


def test_texts_are_cut_at_their_headings() -> None:
    """Markdown outside of fences, and reStructuredText by the lines below its headings."""
    filler = ["text"] * 25
    text = ["# One", "```", "# no heading", "```", *filler, "## Two", "text"]
    assert [each.names for each in blocks("a.md", "\n".join([*text, ""]))] == [("One",), ("Two",)]
    text = ["One", "===", ".. code-block::", *filler, "Two", "~~~", "text"]
    assert [(each.first, each.names) for each in blocks("a.rst", "\n".join([*text, ""]))] == [
        (1, ("One",)),
        (29, ("Two",)),
    ]


def test_a_long_block_is_cut_in_pieces() -> None:
    """Blocks of about the size of a definition: no function of a thousand lines takes all."""
    found = blocks("a.py", "def f():\n" + "    pass\n" * 99)
    assert [(each.last, each.names, each.around) for each in found] == [
        (last, ("f",), (1,)) for last in (20, 40, 60, 100)
    ]
    body = "        step()\n" * 16 + "\n    again()\n" + "        step()\n" * 40
    assert next(each.last for each in blocks("a.py", f"def f():\n{body}")) == 18


@given(
    st.sampled_from(("a.py", "a.js", "a.md", "a.rst", "a.unknown")),
    st.lists(
        st.sampled_from(("def f():", "class A:", "    def g():", "  @x", "# y", "", "---", "code")),
        max_size=300,
    ),
)
def test_blocks_are_the_file(path: str, lines: list[str]) -> None:
    """Each line is in exactly one block."""
    shown = [
        line for each in blocks(path, "\n".join([*lines, ""])) for line in range(each.first, each.last + 1)
    ]
    assert shown == list(range(1, len(lines) + 1))
