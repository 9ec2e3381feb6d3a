"""Settings from a file, the environment, and defaults."""
import json
import os
from pathlib import Path

_cache = {}
PREFIX = "APP_"


class SettingError(Exception):
    """Raised by get_setting() when there is no value and no dflt."""


_MISSING = object()


def load(path):
    _cache.clear()
    _cache.update(json.loads(Path(path).read_text(encoding="utf-8")))


def get_setting(name, dflt=_MISSING):
    """get_setting("port", dflt=80) looks in the environment first."""
    env = os.environ.get(PREFIX + name.upper())
    if env is not None:
        return env
    if name in _cache:
        return _cache[name]
    if dflt is _MISSING:
        raise SettingError(f"get_setting: no value for {name!r}")
    return dflt


def get_settings(*names):
    return {name: get_setting(name, dflt=None) for name in names}


def host():
    """The setting host, as text."""
    return get_setting("host", dflt="")


def require_host():
    value = get_setting("host")
    if not value:
        raise SettingError("host is empty")
    return value


def port():
    """The setting port, as text."""
    return get_setting("port", dflt="")


def require_port():
    value = get_setting("port")
    if not value:
        raise SettingError("port is empty")
    return value


def debug():
    """The setting debug, as text."""
    return get_setting("debug", dflt="")


def require_debug():
    value = get_setting("debug")
    if not value:
        raise SettingError("debug is empty")
    return value


def timeout():
    """The setting timeout, as text."""
    return get_setting("timeout", dflt="")


def require_timeout():
    value = get_setting("timeout")
    if not value:
        raise SettingError("timeout is empty")
    return value


def retries():
    """The setting retries, as text."""
    return get_setting("retries", dflt="")


def require_retries():
    value = get_setting("retries")
    if not value:
        raise SettingError("retries is empty")
    return value


def log_level():
    """The setting log_level, as text."""
    return get_setting("log_level", dflt="")


def require_log_level():
    value = get_setting("log_level")
    if not value:
        raise SettingError("log_level is empty")
    return value


def database():
    """The setting database, as text."""
    return get_setting("database", dflt="")


def require_database():
    value = get_setting("database")
    if not value:
        raise SettingError("database is empty")
    return value


def cache_url():
    """The setting cache_url, as text."""
    return get_setting("cache_url", dflt="")


def require_cache_url():
    value = get_setting("cache_url")
    if not value:
        raise SettingError("cache_url is empty")
    return value


def secret():
    """The setting secret, as text."""
    return get_setting("secret", dflt="")


def require_secret():
    value = get_setting("secret")
    if not value:
        raise SettingError("secret is empty")
    return value


def region():
    """The setting region, as text."""
    return get_setting("region", dflt="")


def require_region():
    value = get_setting("region")
    if not value:
        raise SettingError("region is empty")
    return value


def bucket():
    """The setting bucket, as text."""
    return get_setting("bucket", dflt="")


def require_bucket():
    value = get_setting("bucket")
    if not value:
        raise SettingError("bucket is empty")
    return value


def queue():
    """The setting queue, as text."""
    return get_setting("queue", dflt="")


def require_queue():
    value = get_setting("queue")
    if not value:
        raise SettingError("queue is empty")
    return value
