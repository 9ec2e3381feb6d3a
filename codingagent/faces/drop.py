"""The loop of `new` and `resume`: waits on the inbox and hands each finished reply to the conversation."""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from codingagent.core.findings import Letter
from codingagent.core.records import LyingFile
from codingagent.core.settling import SETTLED_AFTER_S, Hint, Tracker, is_finished

if TYPE_CHECKING:
    from codingagent.conversation import Conversation

# Network drives, WSL and containers send no events, so the folder is looked at all the same.
LOOK_EVERY_S = 1.0

# Where something is written all the time, what was made ready ahead would never hold.
_PREPARATIONS = 5


class Patience(Protocol):
    """Waits until something may have happened, at most so long; gives what was heard, by file name."""

    def wait(self, timeout_s: float) -> Mapping[str, Hint]: ...


class Inbox:
    """What lies in the inbox, and which of it is finished.

    Args:
        look: gives the files that lie there now, oldest first.
        left_alone: files as they lay there before; they are passed over until they change.
    """

    def __init__(
        self, look: Callable[[], list[Letter]], left_alone: Iterable[LyingFile] = ()
    ) -> None:
        self._look = look
        self._left_alone = set(left_alone)
        self._tracker = Tracker()
        self._hints: dict[str, Hint] = {}

    def hear(self, hints: Mapping[str, Hint]) -> None:
        """Takes note of what the system said; a hint holds until the file is seen to change again."""
        self._hints.update(hints)

    def next(self) -> tuple[Letter | None, bool]:
        """Gives the oldest letter if it is finished, and whether there is any letter at all.

        An older letter that is still being written holds up the younger: order is by time.
        """
        letters = [letter for letter in self._look() if not self._is_left_alone(letter)]
        self._tracker = self._tracker.after({letter.name: letter.sighting for letter in letters})
        for letter in letters:
            if letter.sighting.size_bytes == 0:
                continue  # empty files wait, and hold up nobody
            first = self._tracker.first[letter.name]
            hint = self._hints.get(letter.name, Hint.NOTHING)
            if is_finished(first, letter.sighting, hint):
                self._hints.pop(letter.name, None)
                return letter, True
            return None, True
        return None, False

    def leave(self, letter: Letter) -> None:
        """Leave a letter where it is, until it changes: it is for another session."""
        self._left_alone.add(_lying(letter))

    def _is_left_alone(self, letter: Letter) -> bool:
        return _lying(letter) in self._left_alone


def _lying(letter: Letter) -> LyingFile:
    now = letter.sighting
    return LyingFile(letter.name, now.size_bytes, now.modified_ns)


def follow(
    conversation: "Conversation",
    inbox: Inbox,
    patience: Patience,
    glance: "Callable[[Conversation], None]" = lambda _: None,
    attend: "Callable[[Conversation], bool]" = lambda _: False,
) -> str:
    """Take replies until the session is complete.

    Return the session that the next one is for, if the conversation follows answers to others; else "".

    Args:
        conversation: the session at work.
        inbox: where replies come.
        patience: what wakes us.
        glance: called each time before we wait: it may bring replies to the inbox from elsewhere.
        attend: does what others ask meanwhile; tells whether the request was written anew.

    Raises:
        UsageError: if nobody knows which session a reply is for.
        WorkError: if the disk does not let it; the session can be resumed.
        KeyboardInterrupt: passed on.
    """
    announced = preparations = 0
    while not conversation.session.is_complete:
        letter, any_left = inbox.next()
        if letter is not None:
            if other := conversation.take(letter.name):
                if conversation.follows_answers:
                    return other
                inbox.leave(letter)
            continue
        if attend(conversation):
            announced = 0
        if announced != conversation.session.sequence:
            conversation.requests.announce(watched=True)
            announced = conversation.session.sequence
            preparations = _PREPARATIONS
        glance(conversation)
        if not any_left and preparations:
            preparations = 0 if conversation.prepare_ahead() else preparations - 1
        is_soon = any_left or preparations
        inbox.hear(patience.wait(SETTLED_AFTER_S if is_soon else LOOK_EVERY_S))
    return ""


def take_present(conversation: "Conversation", inbox: Inbox) -> tuple[str, bool]:
    """Take the replies that lie there now, each a turn of its own; what is still growing stays.

    Return the session that the next one is for, as `follow` does, and whether one still grows.

    Raises:
        UsageError, WorkError, KeyboardInterrupt: as `follow`.
    """
    waited = 0.0
    while not conversation.session.is_complete:
        letter, any_left = inbox.next()
        if letter is not None:
            if other := conversation.take(letter.name):
                if conversation.follows_answers:
                    return other, False
                inbox.leave(letter)
            waited = 0.0
        elif any_left and waited < 2 * SETTLED_AFTER_S:
            time.sleep(SETTLED_AFTER_S / 3)
            waited += SETTLED_AFTER_S / 3
        else:
            return "", any_left
    return "", False
