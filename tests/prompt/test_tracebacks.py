"""Files that an output names: each way compilers and interpreters write them, and what is no file."""

from hypothesis import given
from hypothesis import strategies as st

from codingagent.prompt.tracebacks import named_in
from tests.rows import each_row

ROOT = "/home/you/shop"
FILES = (
    "shop/cart.py",
    "tests/test_cart.py",
    "src/main.rs",
    "src/App.tsx",
    "web/index.js",
    "lib/Util.java",
    "a/same.c",
    "b/same.c",
    "with space/x.py",
    "public/index.php",
    "Program.cs",
)

OUTPUTS = [
    ('  File "/home/you/shop/shop/cart.py", line 12, in total', [("shop/cart.py", 12)]),
    ('  File "shop/cart.py", line 3', [("shop/cart.py", 3)]),
    ('  File "/home/you/shop/with space/x.py", line 3', [("with space/x.py", 3)]),
    ('  File "/usr/lib/python3.11/unittest/case.py", line 57, in run', []),
    ("tests/test_cart.py:8: AssertionError", [("tests/test_cart.py", 8)]),
    ("FAILED tests/test_cart.py::test_total - assert 1 == 2", []),
    ("error[E0308]: mismatched types\n  --> src/main.rs:3:5", [("src/main.rs", 3)]),
    ("src/App.tsx(10,5): error TS2304: Cannot find name", [("src/App.tsx", 10)]),
    ("src/App.tsx:10:5 - error TS2304", [("src/App.tsx", 10)]),
    ("    at run (/home/you/shop/web/index.js:10:5)", [("web/index.js", 10)]),
    ("    at file:///home/you/shop/web/index.js:10:5", [("web/index.js", 10)]),
    ("\tat shop.Util.run(Util.java:33)", [("lib/Util.java", 33)]),
    ("a/same.c:4:2: error: expected ';'", [("a/same.c", 4)]),
    ("same.c:4:2: error: expected ';'", []),  # there are two: nothing is guessed
    ("./src/main.rs:7:1: warning", [("src/main.rs", 7)]),
    ("PHP Fatal error: x in /home/you/shop/public/index.php on line 3", [("public/index.php", 3)]),
    ("   at A.B() in /home/you/shop/Program.cs:line 12", [("Program.cs", 12)]),
    ("src\\main.rs:9:1: error", [("src/main.rs", 9)]),
    ("/etc/passwd:1: and ../shop/cart.py:1:", []),
    ("http://localhost:8000 12:30:01 ratio 1.5:3", []),
    ("", []),
]


@each_row(("output", "expected"), OUTPUTS, ids=[o[:40] for o, _ in OUTPUTS])
def test_a_place_in_an_output_is_a_file_and_a_line(output: str, expected: list[tuple[str, int]]) -> None:
    """What the model would ask for next is there already."""
    found = [(path, line) for path, lines in named_in(output, ROOT, FILES) for line in lines]
    assert found == expected


@each_row(
    ("output", "expected"),
    [
        (r"C:\w\Program.cs(10,5): error CS1002: ; expected [C:\w\w.csproj]", ["Program.cs"]),
        (r"c:\w\a\same.c(3): error C2143: syntax error", ["a/same.c"]),
        (r'File "c:\w\shop\cart.py", line 3', ["shop/cart.py"]),
        (r"PHP Fatal error: x in C:\w\public\index.php on line 3", ["public/index.php"]),
        (r"C:\else\Program.cs(10,5): error and D:\w\Program.cs(1)", []),
    ],
)
def test_paths_of_windows_have_a_drive_in_either_case(output: str, expected: list[str]) -> None:
    assert [path for path, _ in named_in(output, r"C:\w", FILES)] == expected


def test_of_a_python_stack_the_last_files_count_of_a_compiler_the_first() -> None:
    """The cause stands at the end of a traceback, and at the beginning of a list of errors."""
    files = [f"f{number}.py" for number in range(9)]
    frames = "".join(f'  File "f{number}.py", line 1, in f\n' for number in range(9))
    stack = f"Traceback (most recent call last):\n{frames}ValueError\n"
    assert [path for path, _ in named_in(stack, ROOT, files)] == files[:-6:-1]
    errors = "".join(f"f{number}.py:1: error\n" for number in range(9))
    assert [path for path, _ in named_in(errors, ROOT, files)] == files[:5]


@given(st.text(alphabet="ab./\\:(),\"' \n1", max_size=300))
def test_no_output_is_a_fault(output: str) -> None:
    """Commands print whatever they like."""
    assert all(lines for _, lines in named_in(output, "/w", ("a", "a.b", "a/b.a")))


@each_row("hostile", ["a.a", "./", "a:", 'File "', "(", "a.b(", "1:1 "])
def test_a_hostile_output_is_read_in_one_go(hostile: str) -> None:
    """No expression here may be made to work for hours."""
    assert named_in(hostile * 100_000, "/w", FILES) == []
