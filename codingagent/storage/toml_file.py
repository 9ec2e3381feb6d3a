"""Read a TOML file that a person wrote."""

from pathlib import Path

from codingagent.errors import UsageError
from codingagent.model.encoding import typed_text

_SETTINGS_LIMIT_BYTES = 1_000_000


def read_toml(path: Path) -> dict[str, object]:
    """Return the content of a TOML file; empty if it is missing. UsageError if it can't be read."""
    if not path.exists():
        return {}
    import tomllib  # slow to import, and only a home with settings needs it

    if not path.is_file() or path.stat().st_size > _SETTINGS_LIMIT_BYTES:
        raise UsageError(f"{path} can't be read: it is not a file, or too large for settings")
    try:
        return tomllib.loads(typed_text(path.read_bytes()))
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8 text; save it as UTF-8") from None
    except (OSError, ValueError, RecursionError) as fault:
        raise UsageError(f"{path} can't be read: {fault}") from fault
