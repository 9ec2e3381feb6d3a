"""The loop in Firefox, which has its own mind about the clipboard and the origin of a request."""

from pathlib import Path

import pytest

from tests.page.browsing import TASK, answer, served
from tests.page.firefox import CONTROL, firefox
from tests.sandboxes import needs_bwrap

DROP = """const transfer = new DataTransfer();
    transfer.items.add(new File([arguments[1]], arguments[0]));
    document.body.dispatchEvent(new DragEvent("drop", {dataTransfer: transfer, bubbles: true}));"""


def test_a_task_takes_four_keys_in_firefox_and_a_request_holds_what_is_ticked(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The keys are those from its words to the commit, beside the chat's own copy and paste."""
    for name in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"):
        monkeypatch.setenv(name, "a@example.org")
    (project / "seconds.py").write_text("def parse_seconds(text):\n    pass\n")
    (project / "other.csv").write_text("1,2\n")
    box = "//*[@id='parts']/ul//input[@data-part='{}']"
    with firefox(tmp_path / "profile") as tab, served(project) as found:
        tab.open(found.address)
        tab.fill("//textarea[@id='task']", "Make parse() accept seconds")
        tab.press("Write the first request")  # 1
        tab.until_shown("Send request 1")
        (request,) = (found.home / "outbox").glob("*_seq0001.txt")
        for has_it, words in ((False, "left out"), (True, "tokens")):
            tab.click(box.format("seconds.py"))
            tab.element(f"//*[@id='parts']/ul/li[contains(., 'seconds.py') and contains(., '{words}')]")
            assert ("--- seconds.py" in request.read_text("utf-8")) == has_it
            assert tab.run("return document.activeElement.dataset.part") == "seconds.py"
        tab.click("//summary[text()='Other files']")
        tab.click("//*[@id='tree']//input[@data-part='other.csv']")
        tab.element(box.format("other.csv"))
        assert "--- other.csv" in request.read_text("utf-8")
        tab.press("Copy")  # 2
        tab.until_shown("Copied: paste it into the chat")
        body = '[CREATE_FILE path="a.txt"]\nx\n[/CREATE_FILE]\n[DONE]\nIt is there.\n[/DONE]'
        tab.copy_elsewhere(answer(found, 1, body), tmp_path / "chat.html")
        tab.keys(CONTROL, "v")  # 3
        tab.press("Commit")  # 4
        tab.until_shown("Committed on")
        assert tab.run("return document.querySelector('#tree, #answer')") is None


def test_the_loop_in_firefox(project: Path, tmp_path: Path) -> None:
    with firefox(tmp_path / "profile") as tab, served(project) as found:
        tab.open(found.address)
        tab.fill("//textarea[@id='task']", TASK)
        tab.press("Write the first request")
        tab.until_shown("Send request 1")
        tab.press("Copy")
        tab.until_shown("Copied: paste it into the chat")
        assert tab.pasted() == next((found.home / "outbox").glob("*_seq0001.txt")).read_text("utf-8")
        # What it would never be given is not offered.
        tab.until("document.getElementById('review') && !document.getElementById('auto')")
        tab.copy_elsewhere(found.reply(1), tmp_path / "chat.html")
        tab.keys(CONTROL, "v")
        tab.until_shown("Send request 2")
        tab.run(DROP, "answer.txt", answer(found, 2, '[CREATE_FILE path="a.txt"]\nx\n[/CREATE_FILE]'))
        tab.until_shown("Send request 3")
        tab.run(DROP, "text.py", (project / "durations/text.py").read_text() + "SECONDS = 60\n")
        tab.until_shown("Send request 4")
        assert (project / "a.txt").read_text() == "x\n"
        assert "SECONDS = 60" in (project / "durations/text.py").read_text()
        tab.press("Undo this turn")
        tab.until("document.querySelector('li.undone')")
        assert "SECONDS" not in (project / "durations/text.py").read_text()


def test_the_better_of_two_answers_in_firefox(project: Path, tmp_path: Path) -> None:
    needs_bwrap()
    with firefox(tmp_path / "profile") as tab, served(project) as found:
        tab.open(found.address)
        tab.fill("//textarea[@id='task']", TASK)
        tab.click("//summary[contains(., 'several chats')]")
        tab.fill("//input[@id='chats']", "2")
        tab.press("Write the first request")
        tab.until_shown("Send request 1")
        for number, text in enumerate(("one", "two"), 1):
            body = f'[CREATE_FILE path="a.txt"]\n{text}\n[/CREATE_FILE]'
            tab.run(DROP, f"{text}.txt", answer(found, 1, body))
            tab.until(f"document.querySelector('#candidate-{number}')")
        tab.click("//summary[contains(., 'From 1 to 2')]")
        tab.until("document.querySelector('#diff-try-1-2 .added')")
        assert not (project / "a.txt").exists()
        tab.press("Take 2")
        tab.until_shown("Send request 2")
        assert (project / "a.txt").read_text() == "two\n"
