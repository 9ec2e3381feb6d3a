"""Replace the secrets of one session with names in outgoing text; put the values back in answers.

A name is SECRET-<KIND>-<6 characters>: a keyed hash and its check character, in Crockford's base 32.
"""

import hashlib
import hmac
import re
import zlib
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cached_property
from itertools import accumulate
from unicodedata import normalize

from msgspec import Struct
from msgspec.structs import replace

from codingagent.model.paths import glob_matcher, is_glob
from codingagent.model.patterns import lazy_pattern
from codingagent.secrets import assigned, files, values
from codingagent.secrets.detect import Secret, find_secrets
from codingagent.secrets.rules import part
from codingagent.secrets.texts import ENCODED, decoded, end_of, forms_of, likely, places

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_HASHED = 5
_NAME = lazy_pattern(rf"SECRET-[A-Z0-9]{{1,16}}-[{_ALPHABET}]{{{_HASHED + 1}}}(?![0-9A-Za-z])")
_ALTERED = lazy_pattern(part("altered"), re.IGNORECASE)
_REST = lazy_pattern("[0-9A-Za-z]*")
_CODE = lazy_pattern(rf"(?<![0-9A-Za-z])[{_ALPHABET}]{{{_HASHED + 1}}}(?![0-9A-Za-z])")
_FIRST = "SECRET-"
_INVISIBLE = lazy_pattern("[\u00ad\u200b-\u200f\u2060\ufeff]")
# A shorter value is a word or a number that means something else in other places.
_SHORTEST = 8
# One without digits or signs may be a word up to this length.
_LONGEST_WORD = 15
# Beyond this many, a text is compared with how the values begin, where one may: the time stays linear.
_SEARCHED = 1_000
# Other characters of value lines say what they are: these may be seen.
_FRAME = lazy_pattern(r"-----(?:BEGIN|END) [A-Z0-9 ]+-----")
# What a secret file says of places is not hidden elsewhere.
_PATH = lazy_pattern(r"(?=.{1,40}$)~?\.{0,2}/[\w./-]*")
LITERAL = "TEXT"
"""The kind of a text that only looks like a name: it gets a name, too, so that it comes back unchanged."""
# The kind of a text that the person named: a file that may be shown does not show it.
_NAMED = "HIDDEN"


class HiddenValue(Struct):
    """A hidden value, its name, and the first line of each file that held it."""

    name: str
    kind: str
    value: str
    is_wide: bool
    """It is hidden in every text, not only where it was found."""
    places: dict[str, int] = {}
    is_allowed: bool = False


class WrongName(Struct, frozen=True):
    """A name in an answer that no request held, and the one that is nearest; empty: none is near."""

    written: str
    true: str


class Wishes(Struct, frozen=True):
    """The person's choices: names, files and globs that may be shown, and texts that must not."""

    allow: tuple[str, ...] = ()
    hide: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    """Secret files that they were asked about and did not allow."""

    def allows(self, *names: str) -> bool:
        return any(fits(each, *names) for each in self.allow)


def fits(pattern: str, *names: str) -> bool:
    return pattern in names or (is_glob(pattern) and any(map(glob_matcher(pattern), names)))


Hides = Callable[[str, str], str]
"""Hide the secrets of a text, which is from the file of that path; empty: from none."""


class Vault:
    """The values of one session and their names; without a key no secrets are searched for."""

    def __init__(
        self, key: bytes = b"", entries: Iterable[HiddenValue] = (), copies: files.Copies | None = None
    ) -> None:
        self.key, self.hides = key, bool(key)
        self.copies = copies or files.Copies()
        self.is_secret_file = self.copies.is_secret_file
        self.wishes = Wishes()
        self.is_changed = False
        self.news: list[HiddenValue] = []
        """Values hidden for the first time since the person was last told."""
        self.by_name: dict[str, HiddenValue] = {}
        self._by_value: dict[str, HiddenValue] = {}
        self._forms: dict[str, HiddenValue] = {}
        for entry in entries:
            self._add(entry)
        self._told = {*self.by_name}

    def hide(self, text: str, path: str = "", /, *, tells: bool = True) -> str:
        """Return a text with names for its secrets, in as many lines; of a path on disk it is kept."""
        if path and self.hides and self.is_secret_file(path, text):
            self.is_changed |= self.copies.keep(path, "" if self.wishes.allows(path) else text)
        return self._hidden(text, path, self.spans(text, path), tells=tells)

    def preview(self, text: str, path: str) -> str:
        """Return a text that no file holds yet, as `hide` would; nothing about the file is kept or told."""
        return self._hidden(text, path, self.spans(text, path), is_on_disk=False, tells=False)

    def _hidden(
        self, text: str, path: str, spans: list[Secret], *, is_on_disk: bool = True, tells: bool = True
    ) -> str:
        if not spans:
            return text
        parts: list[str] = []
        end = line = counted = 0
        for span in spans:
            line += text.count("\n", counted, span.start)
            counted = span.start
            parts.append(text[end : span.start])
            for number, piece in enumerate(text[span.start : span.end].split("\n")):
                bare = piece.strip()
                at = line + number + 1 if is_on_disk else 0
                name = self._named(bare, span, path, at, tells=tells)
                parts += ("\n" if number else "", piece.replace(bare, name, 1) if bare else piece)
            end = span.end
        parts.append(text[end:])
        return "".join(parts)

    def know(self, text: str, path: str = "", /) -> str:
        """Learn the secrets of a file that is not shown. Return its text unchanged."""
        self.hide(text, path, tells=False)
        return text

    def hide_quote(self, text: str, path: str = "", /, names: Collection[str] = ()) -> str:
        """Return a text that quotes a file, or an answer with some names: also short values are hidden."""
        spans = self.spans(text, path, names, is_quote=True)
        return self._hidden(text, path, spans, is_on_disk=False)

    def hide_diff(self, text: str, path: str) -> str:
        """Return a diff of one file with names for its secrets; what is new in it can be read."""
        head, mark, body = text.partition("@@")
        if not mark or (head and not head.endswith("\n")):
            return self.hide(text)
        # After a hunk's numbers git quotes a line from further up: of a key, perhaps.
        lines = re.sub(r"(?m)^(@@ [-+, 0-9]+ @@).*", r"\1", f"@@{body}").split("\n")
        # What was in the file is a secret as a whole, if it is a secret file.
        old = "\n".join(line[1:] for line in lines if line[:1] in (" ", "-"))
        names = self.names_in(self.preview(old, path))
        inner = "\n".join(line[1:] if line[:1] in (" ", "-", "+") else "" for line in lines)
        pairs = zip(lines, self.hide_quote(inner, path, names).split("\n"), strict=True)
        shown = (line[:1] + rest if line[:1] in (" ", "-", "+") else line for line, rest in pairs)
        return self.hide(head) + "\n".join(shown)

    def learn(self, value: str, kind: str, path: str = "") -> None:
        """Hide a value from now on, unless it is too short or too plain to be told from other text."""
        if self.hides and value not in self._by_value and not self.names_in(value) and _is_telling(value):
            self._entry(value, kind, path, is_wide=True)

    def moved(self, path: str, to: str) -> None:
        if self.is_secret_file(path):
            self.copies.keep(to)
        for entry in self.by_name.values():
            if path in entry.places:
                entry.places = {**entry.places, to: entry.places[path]}
        self.is_changed = True

    def holds(self, text: str, name: str) -> bool:
        """Return whether a text has the value of a name, not only as a part of another word."""
        entry = self.by_name[name]
        spans = _at(text, entry.value, "") if entry.is_wide else self._short(text, [entry])
        ends = (each.end for each in spans)
        return any(not text[end - 1 : end + 1].isalnum() or end == len(text) for end in ends)

    def known_in(self, text: str) -> list[str]:
        """Return the names of the known values in a text that are hidden everywhere."""
        return sorted({entry.name for _, entry in self._plain(text)})

    def hidden_in(self, text: str, path: str) -> list[str]:
        """Return the names of what is hidden in a file on disk, in order."""
        there = self.names_in(text)
        found = dict.fromkeys(_NAME.findall(self.hide(text, path)))
        known = found.keys() & self.by_name.keys() - there
        return [name for name in found if name in known and self.by_name[name].kind != LITERAL]

    def names_in(self, text: str) -> set[str]:
        return self.by_name.keys() & set(_NAME.findall(text)) if _FIRST in text else set()

    def counts(self, text: str) -> dict[str, int]:
        held = [self.by_name[name] for name in self.names_in(text)]
        return dict(sorted(Counter(each.kind for each in held).items()))

    def _named(self, bare: str, span: Secret, path: str, line: int, *, tells: bool) -> str:
        """Return the name of a line of a value; the line itself if it need not be hidden."""
        if not bare or bare in self.by_name or (bare[0] == "-" and _FRAME.fullmatch(bare)):
            return bare
        value = _NAME.sub(self._value_of, bare) if _FIRST in bare else bare
        entry = self._entry(value, span.kind, path, is_wide=span.is_wide)
        is_new = path and line and path not in entry.places
        if is_new and (entry.is_allowed or not self.wishes.allows(path)):
            entry.places, self.is_changed = {**entry.places, path: line}, True
        if entry.is_allowed:
            return bare
        if tells and entry.name not in self._told:
            self._told.add(entry.name)
            self.news.append(entry)
        return entry.name

    def _entry(self, value: str, kind: str, path: str, *, is_wide: bool) -> HiddenValue:
        """Return the entry of a value, a new one if need be; an allowed value is shown everywhere."""
        entry = self._by_value.get(value)
        if entry is None:
            kind = re.sub(r"[^A-Z0-9]", "", kind.upper())[:16] or "VALUE"
            data, name = value.encode("utf-8", "surrogatepass"), ""
            while not name or name in self.by_name:
                number = int.from_bytes(hmac.digest(self.key, data, hashlib.sha256)[:8])
                code = "".join(_ALPHABET[number >> 5 * i & 31] for i in range(_HASHED))
                check = _ALPHABET[zlib.crc32(f"{kind}{code}".encode()) & 31]
                name, data = f"{_FIRST}{kind}-{code}{check}", data + b"\0"
            entry = HiddenValue(name, kind, value, is_wide and _is_telling(value))
            self._add(entry)
            self.is_changed = True
            # Not one that was known before: a command could copy it into a file that may be shown.
            entry.is_allowed = bool(path) and kind != _NAMED and self.wishes.allows(path)
        return entry

    def obey(self, wishes: Wishes) -> None:
        self.wishes = wishes
        for line in "\n".join(wishes.hide).split("\n"):
            self.learn(line, _NAMED)
        for entry in self.by_name.values():
            places = () if entry.kind == _NAMED else entry.places
            entry.is_allowed = wishes.allows(entry.name, *places)

    def _value_of(self, match: re.Match[str]) -> str:
        entry = self.by_name.get(match[0])
        return match[0] if entry is None else entry.value

    def _add(self, entry: HiddenValue) -> None:
        self.by_name[entry.name] = self._by_value[entry.value] = entry
        for cached in ("_near_names", "_beginnings", "_likely"):
            self.__dict__.pop(cached, None)
        for form in forms_of(entry.value) if entry.is_wide else ():
            self._forms.setdefault(form, entry)  # a form that was met is an entry, too

    def spans(
        self, text: str, path: str, names: Collection[str] = (), *, is_quote: bool = False
    ) -> list[Secret]:
        """Return what to hide, in order and apart: of overlapping spans, all that they cover."""
        if not self.hides:
            return []
        form = "" if is_quote else path
        found = find_secrets(text, form)
        if not (found or path or self.by_name or self.wishes.hide or _FIRST in text):
            return found
        if path and self.is_secret_file(path, None if is_quote else text):
            for name, first, last in files.variables_in(text) if form else ():
                value = text[first:last]
                is_place = "://" in value or _PATH.fullmatch(value) or values.is_technical(value)
                is_known = assigned.is_setting(name) and not values.is_random(value)
                found.append(Secret(first, last, "VALUE", not (is_place or is_known)))
            found += self._short(text, [e for e in self.by_name.values() if path in e.places])
        found += self._short(text, [self.by_name[name] for name in names])
        for each in found:
            # A value that was found is searched for in the rest of the text, too.
            for line in text[each.start : each.end].split("\n") if each.is_wide else ():
                self.learn(line.strip(), each.kind, path)
        found += self._known(text)
        for start, end in self.copies.beside_variables(text):
            held = self._by_value.get(text[start:end])
            if held and not (held.is_wide or held.is_allowed):
                found.append(Secret(start, end, held.kind, is_wide=False))
        for words in self.wishes.hide:
            found += _at(text, words, _NAMED)
        if _FIRST in text:
            found = self._beside_names(text, found, is_file=bool(path))
        merged: list[Secret] = []
        for each in sorted(found, key=lambda each: (each.start, -each.end)):
            if merged and each.end <= merged[-1].end:
                continue
            end = next(_REST.finditer(text, each.end)).end()  # a name must touch no word
            one = merged.pop() if merged and each.start < merged[-1].end else each
            merged.append(one if one.end == end else replace(one, end=end))
        return merged

    def _beside_names(self, text: str, found: list[Secret], *, is_file: bool) -> list[Secret]:
        """Return the spans that are not in a name; what only looks like a name in a file gets one."""
        written = [*_NAME.finditer(text)]
        names = [each.span() for each in written if each[0] in self.by_name]
        others = (each.span() for each in written if is_file and each[0] not in self.by_name)
        found += (Secret(*span, LITERAL, is_wide=False) for span in others)
        before = (bisect(names, (each.start, len(text))) - 1 for each in found)
        pairs = zip(found, before, strict=True)
        return [each for each, at in pairs if at < 0 or each.end > names[at][1]]

    def _known(self, text: str) -> Iterator[Secret]:
        for (start, end), entry in self._plain(text):
            yield Secret(start, end, entry.kind, is_wide=text[start:end] in self._forms)
        if not self._forms:
            return
        # What is hidden as it is need not be read: each value of a secret file would be.
        pairs = ((run, self._forms.get(run[0])) for run in ENCODED.finditer(text))
        runs = [run for run, entry in pairs if entry is None or entry.is_allowed]
        meanings = [decoded(match[0]) for match in runs]
        ends = list(accumulate(len(each) + 1 for each in meanings))
        for (start, _), entry in self._plain("\0".join(meanings)):
            yield Secret(*runs[bisect(ends, start)].span(), entry.kind, is_wide=False)

    def _plain(self, text: str) -> Iterator[tuple[tuple[int, int], HiddenValue]]:
        begin = self._beginnings
        if len(begin) > _SEARCHED:
            starts = map(re.Match.start, self._likely.finditer(text))
            places_ = ((at, each) for at in starts if (each := text[at : at + _SHORTEST]) in begin)
        else:
            places_ = ((at, each) for each in begin for at in places(text, each, 1))
        for at, beginning in places_:
            for form in begin[beginning]:
                entry = self._forms[form]
                if not entry.is_allowed and (end := end_of(text, form, at)):
                    yield (at, end), entry

    @cached_property
    def _beginnings(self) -> dict[str, list[str]]:
        """Return the forms of values by their first characters: most forms of a value begin alike."""
        found: dict[str, list[str]] = {}
        for form in self._forms:
            found.setdefault(form[:_SHORTEST], []).append(form)
        return found

    @cached_property
    def _likely(self) -> re.Pattern[str]:
        return likely(self._beginnings)

    @staticmethod
    def _short(text: str, held: Iterable[HiddenValue]) -> Iterator[Secret]:
        """Yield where a text has those values that are not hidden everywhere."""
        for entry in [each for each in held if not each.is_wide][:_SEARCHED]:
            for span in _at(text, entry.value, entry.kind):
                around = text[span.start - 1 : span.start], text[span.end : span.end + 1]
                if not any(map(str.isalnum, around)):
                    yield span

    def put_back(self, text: str) -> tuple[str, list[WrongName]]:
        """Return a text with values in place of their names, and the names that have no value."""
        if not self.by_name and _FIRST not in text:
            return text, []
        unknown = [name for name in _NAME.findall(text) if name not in self.by_name]
        faults = [WrongName(name, self._nearest(*name.split("-")[1:])) for name in unknown]
        for between in _NAME.split(text) if self.by_name else ():
            # What a chat or a model altered.
            seen = between if between.isascii() else _INVISIBLE.sub("", normalize("NFKC", between))
            others = (each for each in _ALTERED.finditer(seen) if not _NAME.fullmatch(each[0]))
            found = [(each[0], self._nearest(each[1], each[2])) for each in others]
            found += ((code, self._near_names.get(("", code), "")) for code in _CODE.findall(seen))
            faults += (WrongName(written, true) for written, true in found if true)
        unique: dict[str, WrongName] = {}
        for fault in faults:
            unique.setdefault(fault.true or fault.written, fault)
        return _NAME.sub(self._value_of, text), [*unique.values()]

    def _nearest(self, kind: str, code: str) -> str:
        """Return the name that a kind and a code come from, if at most one character is wrong."""
        kind, code, near = kind.upper(), code.upper(), self._near_names
        likely = [(kind, each) for each in (code, *_shorter(code))]
        return next((near[each] for each in (*likely, ("", code)) if each in near), "")

    @cached_property
    def _near_names(self) -> dict[tuple[str, str], str]:
        """Return the names by kind and code, also codes without one character, and by the code alone."""
        near: dict[tuple[str, str], str] = {}
        for name in self.by_name:
            _, kind, code = name.split("-")
            near |= {(kind, each): name for each in (*_shorter(code), code)} | {("", code): name}
        return near


def _is_telling(value: str) -> bool:
    """Return whether a value can't be a common word or number of other texts."""
    if len(value) < _SHORTEST or len(set(value)) < _SHORTEST // 2 or value.isspace():
        return False
    return len(value) > _LONGEST_WORD or not (value.isalpha() or value.isdigit())


def _at(text: str, wanted: str, kind: str) -> Iterator[Secret]:
    for at in places(text, wanted) if wanted else ():
        yield Secret(at, at + len(wanted), kind)


def _shorter(code: str) -> Iterator[str]:
    yield from (code[:i] + code[i + 1 :] for i in range(len(code)))
