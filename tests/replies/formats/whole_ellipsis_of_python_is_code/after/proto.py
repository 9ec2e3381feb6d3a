from typing import Protocol


class Reader(Protocol):
    def read(self) -> bytes:
        """Reads."""
        ...

    def close(self) -> None: ...


class Empty(Exception):
    ...
