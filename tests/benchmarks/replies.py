"""What it costs to read a reply: against the strict grammar alone."""

from collections.abc import Iterator

from codingagent.protocols.tags import decoder, reply, scanner
from tests.benchmarks.measuring import Figure, ratio

COUNT = 2_000
LINES = 160

REPLY = '[REPLY session="a1b2c3d4" sequence="2"]\n'


def _bodies() -> list[tuple[str, str]]:
    """Return paths and contents of about ten megabytes."""
    line = "    total = total + shop.price(item, rate)\n"
    return [(f"src/part_{n}.py", f"def f_{n}():\n{line * (LINES - 40)}") for n in range(COUNT)]


def reading() -> Iterator[Figure]:
    """Design, speed: a clean reply of ten megabytes."""
    bodies = _bodies()
    blocks = "".join(f'[CREATE_FILE path="{path}"]\n{body}[/CREATE_FILE]\n' for path, body in bodies)
    text = f"{REPLY}{blocks}[END]\n"
    assert len(reply.read(text).items) == COUNT

    def strict() -> None:
        for block in scanner.scan_lines(text).blocks:
            decoder.decode(block)

    name = f"a clean reply of {len(text) / 1e6:.0f} MB read, against the strict grammar alone"
    yield ratio(name, lambda: reply.read(text), strict, 2, 9)


ALL = (reading,)
