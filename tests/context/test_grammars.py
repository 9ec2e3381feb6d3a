"""Outlines by grammar: the text of a definition up to its body, by one rule for all languages."""

import pytest

from codingagent.context import grammars
from codingagent.context.lines import LineSpan

# A file of each grammar: each line of its outline is marked by a trailing `!`.
FILES = {
    "a.py": "import os\nLIMIT = 3!\nclass A(B):!\n    x = 1\n    async def f(!\n        self,!\n"
    "    ) -> int:!\n"
    "        for a in b:\n            y = 1\n",
    "a.js": "const f = (a) => {!\n  const b = 1\n}\nfunction g(a,!\n  b) {!\n"
    "  for (const x of y) {\n  }\n}\n"
    "class A {!\n  m() {!\n  }\n}\n",
    "a.ts": "import { x } from 'y'\nexport interface A {!\n  b: 1\n}\nexport type C = A | string!\n"
    "class D<T> {!\n  private run(a: string): void {!\n  }\n}\n",
    "a.go": 'package a\n\nimport "fmt"\n\ntype T struct {!\n\tA int\n}\n\nfunc (t *T) F(a int) error {!\n'
    "\tfor i := range x {\n\t}\n\treturn nil\n}\n",
    "a.rs": "use x::y;\nimpl A for B {!\n    pub fn f(&self) -> u8 {!\n        let c = 3;\n"
    "        c\n    }\n}\n"
    "const X: u8 = 1;!\n",
    "A.java": "import a.b;\nclass A {!\n  int x = 1;\n  void f(int a) {!\n"
    "    for (int b : c) {\n    }\n  }\n}\n",
    "a.c": "#include <x.h>\nstatic int f(int a,!\n  int b)!\n{\n  return 1;\n}\nstruct a {!\n"
    "  int b;\n};\n",
    "a.cpp": "namespace n {!\nclass A {!\n  int f() const {!\n    for (auto x : y) {\n    }\n"
    "  }\n};\n}\n",
    "a.rb": "require 'x'\nmodule M!\n  class A < B!\n    def f(a)!\n      a\n    end\n  end\nend\n",
    "a.php": "<?php\nclass A extends B {!\n  public function f($a) {!\n"
    "    foreach ($a as $b) {\n    }\n  }\n}\n",
    "a.cs": "namespace N {!\n  class A {!\n    void F() {!\n      foreach (var a in b) {\n"
    "      }\n    }\n  }\n}\n",
}


@pytest.mark.parametrize("path", FILES)
def test_an_outline_is_the_text_up_to_the_body(path: str) -> None:
    """Signatures of several lines are shown whole; bodies, loops, imports and fields are not."""
    lines = FILES[path].split("\n")
    found = grammars.definitions(path, "\n".join(line.removesuffix("!") for line in lines))
    assert found is not None, "install the grammars: pip install 'codingagent[outlines]'"
    shown = {line for span in found for line in range(span.first, span.last + 1)}
    assert shown == {at for at, line in enumerate(lines, 1) if line.endswith("!")}


def test_a_file_that_no_grammar_reads_has_no_outline_by_grammar() -> None:
    """Other kinds of files, and languages that are not installed, get one by expression."""
    assert grammars.definitions("a.md", "# A") is None
    assert grammars.definitions("a", "") is None


def test_a_broken_file_has_an_outline() -> None:
    """A grammar reads on after what it does not know; text that is no UTF-8 does no harm."""
    text = "def f(:\n  \udce9\n\ndef g():\n    pass\n"
    assert LineSpan(4, 4) in (grammars.definitions("a.py", text) or [])
