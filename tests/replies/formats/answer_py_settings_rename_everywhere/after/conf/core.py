"""Settings from a file, the environment, and defaults."""
import json
import os
from pathlib import Path

_cache = {}
PREFIX = "APP_"


class SettingError(Exception):
    """Raised by read_setting() when there is no value and no default."""


_MISSING = object()


def load(path):
    _cache.clear()
    _cache.update(json.loads(Path(path).read_text(encoding="utf-8")))


def read_setting(name, default=_MISSING):
    """read_setting("port", default=80) looks in the environment first."""
    env = os.environ.get(PREFIX + name.upper())
    if env is not None:
        return env
    if name in _cache:
        return _cache[name]
    if default is _MISSING:
        raise SettingError(f"read_setting: no value for {name!r}")
    return default


def get_settings(*names):
    return {name: read_setting(name, default=None) for name in names}


def host():
    """The setting host, as text."""
    return read_setting("host", default="")


def require_host():
    value = read_setting("host")
    if not value:
        raise SettingError("host is empty")
    return value


def port():
    """The setting port, as text."""
    return read_setting("port", default="")


def require_port():
    value = read_setting("port")
    if not value:
        raise SettingError("port is empty")
    return value


def debug():
    """The setting debug, as text."""
    return read_setting("debug", default="")


def require_debug():
    value = read_setting("debug")
    if not value:
        raise SettingError("debug is empty")
    return value


def timeout():
    """The setting timeout, as text."""
    return read_setting("timeout", default="")


def require_timeout():
    value = read_setting("timeout")
    if not value:
        raise SettingError("timeout is empty")
    return value


def retries():
    """The setting retries, as text."""
    return read_setting("retries", default="")


def require_retries():
    value = read_setting("retries")
    if not value:
        raise SettingError("retries is empty")
    return value


def log_level():
    """The setting log_level, as text."""
    return read_setting("log_level", default="")


def require_log_level():
    value = read_setting("log_level")
    if not value:
        raise SettingError("log_level is empty")
    return value


def database():
    """The setting database, as text."""
    return read_setting("database", default="")


def require_database():
    value = read_setting("database")
    if not value:
        raise SettingError("database is empty")
    return value


def cache_url():
    """The setting cache_url, as text."""
    return read_setting("cache_url", default="")


def require_cache_url():
    value = read_setting("cache_url")
    if not value:
        raise SettingError("cache_url is empty")
    return value


def secret():
    """The setting secret, as text."""
    return read_setting("secret", default="")


def require_secret():
    value = read_setting("secret")
    if not value:
        raise SettingError("secret is empty")
    return value


def region():
    """The setting region, as text."""
    return read_setting("region", default="")


def require_region():
    value = read_setting("region")
    if not value:
        raise SettingError("region is empty")
    return value


def bucket():
    """The setting bucket, as text."""
    return read_setting("bucket", default="")


def require_bucket():
    value = read_setting("bucket")
    if not value:
        raise SettingError("bucket is empty")
    return value


def queue():
    """The setting queue, as text."""
    return read_setting("queue", default="")


def require_queue():
    value = read_setting("queue")
    if not value:
        raise SettingError("queue is empty")
    return value
