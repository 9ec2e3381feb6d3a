"""Immutable sequence with cheap appends: each intermediate value can be kept."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Generic, TypeVar, overload

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class AppendList(Sequence[T_co], Generic[T_co]):
    """Immutable sequence of values.

    `with_one` shares storage. A tuple would be copied whole for each new value, which takes minutes for
    an answer of a hundred thousand operations.
    """

    __slots__ = ("_length", "_shared")

    def __init__(self, values: Iterable[T_co] = ()) -> None:
        self._shared = list(values)
        self._length = len(self._shared)

    def with_one(self, value: T) -> "AppendList[T_co | T]":
        row: AppendList[T_co | T] = AppendList()
        # Another row may already have grown from this one; in that case, copy.
        is_last = len(self._shared) == self._length
        row._shared = self._shared if is_last else self._shared[: self._length]  # type: ignore[assignment]  # our own kind
        row._shared.append(value)
        row._length = self._length + 1
        return row

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[T_co]:
        return islice(self._shared, self._length)

    @overload
    def __getitem__(self, index: int) -> T_co: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T_co, ...]: ...
    def __getitem__(self, index: int | slice) -> T_co | tuple[T_co, ...]:
        if isinstance(index, slice):
            return tuple(self._shared[place] for place in range(*index.indices(self._length)))
        return self._shared[range(self._length)[index]]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AppendList | tuple):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))
