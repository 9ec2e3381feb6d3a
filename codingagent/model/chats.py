"""What chats take, as chats.toml lists it: characters of a paste, and files beside it."""

from collections.abc import Mapping
from functools import cache

from msgspec import Struct, toml


class Figure(Struct, frozen=True, forbid_unknown_fields=True):
    """A number, who says it, and when that was looked up."""

    value: int
    source: str
    seen: str


class Chat(Struct, frozen=True, forbid_unknown_fields=True):
    """What a chat takes; None: nobody says."""

    title: str
    pasted: Figure | None = None
    """Characters of a message."""
    folds: Figure | None = None
    """Characters beyond which a paste becomes an attachment."""
    files: Figure | None = None
    megabytes: Figure | None = None
    """The size of each."""

    def advice(self, size: int) -> str:
        """Return how a request of so many characters is sent to it; empty: nothing is known."""
        if self.pasted is not None and size > self.pasted.value:
            return (
                f"{self.title} takes about {self.pasted.value:,} characters pasted: attach the file, or paste"
                " the parts that `codingagent copy` makes"
            )
        if self.pasted is not None:
            how = "to send more at once, attach the file and raise context_chars"
            return f"The request is made for {self.title}: {self.pasted.value:,} characters; {how}"
        if self.folds is not None and size > self.folds.value:
            return f"{self.title} makes an attachment of so long a paste; it reads it all the same"
        return ""


@cache
def chats() -> Mapping[str, Chat]:
    """Return the chats that are known, by the names that the setting `chat` takes."""
    with open(f"{__file__.removesuffix('chats.py')}chats.toml", encoding="utf-8") as file:  # noqa: PTH123
        return toml.decode(file.read(), type=dict[str, Chat])


def pasted(name: str) -> int | None:
    """Return how many characters a chat takes in a message, if that is known."""
    chat = chats().get(name) if name != "custom" else None
    return None if chat is None or chat.pasted is None else chat.pasted.value
