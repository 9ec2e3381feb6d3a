"""The current time as text."""

from datetime import UTC, datetime


def now() -> str:
    """Return the current UTC time in ISO 8601 with milliseconds and Z."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
