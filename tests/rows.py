"""Rows of a pure function in one test: thousands of tests cost more than what most of them look at."""

import functools
import inspect
import reprlib
from collections.abc import Callable, Iterable
from typing import Any

import pytest

Test = Callable[..., None]
_PARAM = type(pytest.param())


def each_row(
    names: str | Iterable[str], rows: Iterable[Any], ids: Iterable[str] | None = None
) -> Callable[[Test], Test]:
    """Call a test with each row, as `parametrize` does, but as one test.

    All rows are tried; the failure names each that failed. They share the test's fixtures: not for rows
    that change files, or take long.
    """
    wanted = [name.strip() for name in names.split(",")] if isinstance(names, str) else [*names]
    table = [_values(row, len(wanted)) for row in rows]
    told = [*ids] if ids else [f"row {number}" for number in range(len(table))]

    def together(test: Test) -> Test:
        @functools.wraps(test)
        def of_all(**fixtures: Any) -> None:
            faults = []
            for name, row in zip(told, table, strict=True):
                try:
                    test(**fixtures, **dict(zip(wanted, row, strict=True)))
                except Exception as fault:  # noqa: BLE001  # the next row is tried all the same
                    fault.add_note(f"{name}: {reprlib.repr(row)}")
                    faults.append(fault)
            if faults:
                raise ExceptionGroup(f"{len(faults)} of {len(table)} rows of {wanted}", faults)

        form = inspect.signature(test)
        left = [value for name, value in form.parameters.items() if name not in wanted]
        vars(of_all)["__signature__"] = form.replace(parameters=left)
        return of_all

    return together


def _values(row: Any, count: int) -> tuple[Any, ...]:
    if isinstance(row, _PARAM):
        return tuple(row.values)
    return (row,) if count == 1 else tuple(row)
