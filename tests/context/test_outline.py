"""Outlines by expression: the lines that define something, and the blocks between them."""

from hypothesis import given
from hypothesis import strategies as st

from codingagent.context.lines import LineSpan
from codingagent.context.outline import blocks, definitions

# A file of each family: each line that must be in the outline is marked by a trailing `!`.
FILES = {
    "a.py": "import os\nLIMIT = 3!\n\n@cache\nclass A:!\n    async def f(self):!\n        x = 1\n"
    "    def g(self): pass!",
    "a.ts": "import x\nexport interface A {!\n  b: 1\n}\nexport const f = (a) => {!\n  if (a) {\n  }\n"
    "  g(a)\n}\nclass B {!\n  private async run(a: string): Promise<void> {!\n    return\n  }\n}",
    "a.js": "'use strict'\napp.use = function use(fn) {!\n  for (;;) {\n  }\n}\nmodule.exports = app!",
    "a.go": "package a\n\nfunc (c *Context) Next() {!\n\tc.x++\n}\ntype A struct {!\n\tB int\n}",
    "a.rs": "use x;\npub(crate) async fn f() {!\n    let a = 1;\n}\nimpl A for B {!\n    fn g(&self) {}!\n}",
    "a.c": "#include <x.h>\n#define MAX(a) a!\nstatic int f(int a)!\n{\n  return g(a);\n}\n"
    "struct A {!\n  int b;\n};",
    "A.java": "package a;\npublic final class A {!\n  private int x = 1;\n  public <T> T get(B b) {!\n"
    "    return f(b);\n  }\n}",
    "a.rb": "require 'x'\nclass A!\n  def f(a)!\n    a.b\n  end\nend",
    "a.php": "<?php\nclass A {!\n  public function f($a) {!\n    return $a;\n  }\n}",
    "a.sh": "set -e\nrun() {!\n  x\n}",
    "a.md": "# A!\ntext\n## B!\n#tag",
    "a.json": '{\n  "a": {!\n      "b": 1\n  },\n  "c": 2!\n}',
    "a.yaml": "a:!\n  b: 1\n# c\nd: 2!",
    "a.toml": "x = 1\n[a]!\nb = 1",
    "a.unknown": "def f():\n    pass",
}


def test_each_family_shows_its_definitions() -> None:
    """Definition lines by expression, headings for Markdown, top keys for data; else no outline."""
    for path, marked in FILES.items():
        lines = marked.split("\n")
        wanted = [number for number, line in enumerate(lines, 1) if line.endswith("!")]
        found = definitions(path, [line.removesuffix("!") for line in lines])
        assert [span.first for span in found] == wanted, path


def test_a_block_begins_with_what_belongs_to_its_definition() -> None:
    """Decorators and comments before a definition are shown with it."""
    lines = ["import os", "", "# Why", "@cache", "def f():", "    pass", "", "def g():", "    pass"]
    assert blocks(lines, [LineSpan(5, 5), LineSpan(8, 8)]) == [(1, 2), (3, 7), (8, 9)]


def test_a_long_block_is_cut_where_it_is_blank() -> None:
    """Blocks of about the size of a definition: no function of a thousand lines takes all."""
    lines = ["x" if number % 10 else "" for number in range(1, 201)]
    found = blocks(lines, [])
    assert all(block.last - block.first < 80 for block in found)
    assert all(not lines[block.last - 1] for block in found)


@given(st.lists(st.sampled_from(("def f():", "  @x", "# y", "", "code")), max_size=300))
def test_blocks_are_the_file(lines: list[str]) -> None:
    """Each line is in exactly one block."""
    found = blocks(lines, definitions("a.py", lines))
    shown = [line for block in found for line in range(block.first, block.last + 1)]
    assert shown == list(range(1, len(lines) + 1))
