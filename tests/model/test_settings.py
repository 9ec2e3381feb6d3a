"""The settings and where each came from: Design, the command line."""

from typing import Any

import jsonschema  # type: ignore[import-untyped]  # its stubs are a package of their own
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codingagent.errors import UsageError
from codingagent.model import settings
from codingagent.model.settings import Settings, Source
from tests.rows import each_row


def refusal(*sources: Source) -> str:
    with pytest.raises(UsageError) as caught:
        settings.resolve(list(sources))
    assert caught.value.exit_status == 2
    return str(caught.value)


def test_the_defaults_are_those_of_the_design() -> None:
    """Specification 003, RUN_COMMAND: 30 seconds. Design, the outbox: 200,000 characters, 2,000 entries."""
    found = settings.resolve([])
    assert found.settings == Settings("", 200_000, 2_000, 30, 0, ())
    assert set(found.origins.values()) == {"default"}
    assert set(found.origins) == set(settings.meanings())


def test_a_later_source_is_stronger_and_is_named() -> None:
    """Design, the command line: defaults, codingagent.toml, environment, options, in rising order."""
    found = settings.resolve(
        [
            Source("codingagent.toml", {"context_chars": 20_000, "list_entries": 100}),
            settings.from_environment(
                {"CODINGAGENT_LIST_ENTRIES": "200", "CODINGAGENT_PASS_ENV": "A,B", "PATH": "/bin"}
            ),
            Source("options", {"command_timeout": 60}),
        ]
    )
    assert found.settings == Settings("", 20_000, 200, 60, 0, ("A", "B"))
    named = {name: origin for name, origin in found.origins.items() if origin != "default"}
    assert named == {
        "context_chars": "codingagent.toml",
        "list_entries": "environment",
        "command_timeout": "options",
        "pass_env": "environment",
    }


def test_an_unknown_setting_is_an_error_that_names_it() -> None:
    """Design, the command line: an unknown key is an error that names it."""
    assert refusal(Source("codingagent.toml", {"context_char": 1})) == (
        "codingagent.toml: unknown setting 'context_char'; did you mean 'context_chars'?"
    )
    assert refusal(Source("codingagent.toml", {"zzz": 1})) == (
        "codingagent.toml: unknown setting 'zzz'; `codingagent config` lists the settings"
    )
    assert "unknown setting 'list_entry'" in refusal(
        settings.from_environment({"CODINGAGENT_LIST_ENTRY": "1"})
    )


def test_a_variable_that_looks_like_no_setting_is_a_scripts_own() -> None:
    """Environment variables belong to everyone: one that is no slip of the pen stops nothing."""
    variables = {"CODINGAGENT_SRC": "/x", "CODINGAGENT_HOME": "/h", "CODINGAGENT_DIF": "full"}
    assert settings.strays(variables) == ["CODINGAGENT_SRC"]
    found = settings.from_environment(variables)
    assert found == Source("environment", {"dif": "full"})
    assert refusal(found) == "environment: unknown setting 'dif'; did you mean 'diff'?"


def test_the_home_is_no_setting() -> None:
    """Design, the command line: the home says where the settings are."""
    assert settings.from_environment({"CODINGAGENT_HOME": "/x"}) == Source("environment", {})


@each_row(
    ("name", "value", "message"),
    [
        ("context_chars", 9_999, "x: context_chars is 9999; it must be a whole number from 10000 up"),
        ("context_chars", "many", "x: context_chars is 'many'; it must be a whole number from 10000 up"),
        ("context_chars", 20_000.5, "x: context_chars is 20000.5; it must be a whole number from 10000 up"),
        ("list_entries", 19, "x: list_entries is 19; it must be a whole number from 20 up"),
        ("command_timeout", 0, "x: command_timeout is 0; it must be a whole number from 1 up"),
        ("command_timeout", True, "x: command_timeout is True; it must be a whole number from 1 up"),
        ("command_timeout", "-5", "x: command_timeout is '-5'; it must be a whole number from 1 up"),
        ("pass_env", "A", "x: pass_env is 'A'; it must be a list of names"),
        ("pass_env", ["A", 1], "x: pass_env is ['A', 1]; it must be a list of names"),
        ("pass_env", [""], "x: pass_env is ['']; it must be a list of names"),
        ("workspace", 1, "x: workspace is 1; it must be a text"),
    ],
)
def test_a_value_that_cannot_be_used_is_an_error(name: str, value: object, message: str) -> None:
    """Design, the command line: one line, what, where, what to do."""
    assert refusal(Source("x", {name: value})) == message


@pytest.mark.parametrize("digits", ["9" * 5000, "٣" * 5000])
def test_a_number_of_thousands_of_digits_is_an_error_in_one_line(digits: str) -> None:
    """Design, the command line: a traceback is a bug."""
    assert refusal(Source("environment", {"command_timeout": digits}))


def test_numbers_from_the_environment_are_text() -> None:
    """Design, the command line: environment `CODINGAGENT_*`."""
    found = settings.resolve([settings.from_environment({"CODINGAGENT_COMMAND_TIMEOUT": " 45 "})])
    assert found.settings.command_timeout == 45


def test_an_empty_list_in_the_environment_is_an_empty_list() -> None:
    """Design, the command line: the environment is stronger than the file, so it can empty a list."""
    found = settings.resolve(
        [
            Source("codingagent.toml", {"pass_env": ["A"]}),
            settings.from_environment({"CODINGAGENT_PASS_ENV": ""}),
        ]
    )
    assert found.settings.pass_env == ()


def test_each_setting_has_a_meaning() -> None:
    """Design, the command line: `codingagent config` prints the settings in force."""
    assert all(settings.meanings().values())


_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=10), st.dates()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=5,
)


@given(
    st.dictionaries(
        st.one_of(st.sampled_from(sorted(settings.meanings())), st.text(max_size=10)), _VALUES, max_size=4
    ),
    st.dictionaries(
        st.text(max_size=8).map(lambda name: f"CODINGAGENT_{name}"), st.text(max_size=10), max_size=2
    ),
)
def test_settings_are_used_or_refused_in_words(values: dict[str, Any], variables: dict[str, str]) -> None:
    """Design, the command line: a traceback is a bug."""
    try:
        found = settings.resolve(
            [Source("codingagent.toml", values), settings.from_environment(variables)]
        ).settings
    except UsageError as fault:
        assert str(fault)
        return
    assert found.context_chars >= 10_000
    assert found.list_entries >= 20
    assert found.command_timeout >= 1


def test_the_schema_accepts_what_the_settings_accept() -> None:
    """Design, the command line: `schema settings` prints the JSON Schema of codingagent.toml."""
    schema = settings.schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    check = jsonschema.Draft202012Validator(schema)
    good = {"context_chars": 20_000, "pass_env": ["A"], "sandbox": "require", "network": True}
    assert not list(check.iter_errors(good))
    settings.resolve([Source("f", good)])
    for bad in ({"context_chars": 1}, {"sandbox": "maybe"}, {"network": "x"}, {"zzz": 1}):
        assert list(check.iter_errors(bad)), bad
        with pytest.raises(UsageError):
            settings.resolve([Source("f", bad)])
