"""Take an answer, ask, approve and say in a real browser."""

import io
import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.page.browsing import answer, begin, browser, drop, paste, served
from tests.sandboxes import needs_bwrap


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as found:
        yield found


def test_an_answer_is_dropped_zipped_or_just_copied(page: Page, project: Path) -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("durations/extra.py", "EXTRA = 1\n")
        archive.writestr("docs/extra.md", "# Extra\n\n```sh\nls\n```\n")
    with served(project) as found:
        begin(page, found)
        text = answer(found, 1, '[CREATE_FILE path="new.txt"]\nhello\n[/CREATE_FILE]').encode()
        drop(page, "answer.pdf", text)
        expect(page.get_by_text("answer.pdf is not taken")).to_be_visible()
        drop(page, "answer.md", text)
        expect(page.get_by_role("heading", name="Send request 2")).to_be_visible()
        assert (project / "new.txt").read_text("utf-8") == "hello\n"
        drop(page, "answer.zip", b"PK\x03\x04 no zip")
        expect(page.get_by_text("answer.zip is no zip file")).to_be_visible()
        drop(page, "answer.zip", made.getvalue())
        expect(page.get_by_role("heading", name="Send request 3")).to_be_visible()
        assert (project / "durations" / "extra.py").read_text("utf-8") == "EXTRA = 1\n"
        assert (project / "docs" / "extra.md").read_text("utf-8").endswith("ls\n```\n")
        page.get_by_label("take what I copied").check()
        own = answer(found, 3, '[READ_FILE path="new.txt"]')
        for each in ("something else", own.replace(found.session_id, "00000000"), own):
            page.evaluate("text => navigator.clipboard.writeText(text)", each)
            page.evaluate("window.dispatchEvent(new Event('focus'))")
        expect(page.get_by_role("heading", name="Send request 4")).to_be_visible()
        assert len(list((found.home / "inbox" / "processed").iterdir())) == 3
        # A text that is pasted anywhere and asks for nothing is not taken unasked.
        page.evaluate("text => navigator.clipboard.writeText(text)", "a shopping list")
        page.keyboard.press("Control+v")
        expect(page.get_by_text("This does not look like an answer")).to_be_visible()
        assert page.get_by_label("The chat's whole answer").input_value() == "a shopping list"


def test_review_with_one_change_unticked(page: Page, project: Path) -> None:
    with served(project) as found:
        begin(page, found)
        page.get_by_label("show what an answer will do").check()
        one, two = (f'[CREATE_FILE path="{n}.txt"]\nx\n[/CREATE_FILE]' for n in ("a", "b"))
        old = (project / "durations" / "text.py").read_text("utf-8")
        edit = (
            '[EDIT_FILE path="durations/text.py"]\n<<<<<<< SEARCH\nimport re\n=======\nimport re  # regex\n'
            ">>>>>>> REPLACE\n[/EDIT_FILE]"
        )
        paste(page, answer(found, 1, f"{one}\n{two}\n{edit}"))
        expect(page.get_by_text("What this answer will do")).to_be_visible()
        expect(page.locator(".word", has_text="regex").first).to_be_visible()
        assert not (project / "a.txt").exists()
        assert (project / "durations" / "text.py").read_text("utf-8") == old
        page.get_by_label("CREATE_FILE b.txt").uncheck()
        page.get_by_role("button", name="Do what is ticked").click()
        expect(page.get_by_role("heading", name="Send request 2")).to_be_visible()
        assert (project / "a.txt").exists()
        assert not (project / "b.txt").exists()
        assert "# regex" in (project / "durations" / "text.py").read_text("utf-8")
        short = next((found.home / "outbox" / "short").glob("*_seq0002.txt")).read_text("utf-8")
        assert "said no" in short


def test_an_approval_takes_a_click_and_no_key_typed_before(page: Page, project: Path) -> None:
    needs_bwrap()
    (project / "build").mkdir()
    (project / "build" / "x").write_text("x")
    with served(project) as found:
        begin(page, found)
        paste(page, answer(found, 1, "[RUN_COMMAND]\nrm -r build\n[/RUN_COMMAND]"))
        dialog = page.get_by_role("dialog")
        expect(dialog).to_be_visible()
        page.keyboard.press("Enter")
        page.keyboard.press("y")
        expect(dialog.get_by_role("button", name="Yes")).to_be_enabled()
        assert (project / "build").exists()
        expect(dialog).to_contain_text("rm -r build")
        dialog.get_by_role("button", name="Yes").click()
        expect(page.get_by_role("heading", name="Send request 2")).to_be_visible()
        assert not (project / "build").exists()


def test_a_denial_goes_to_the_model_with_its_reason(page: Page, project: Path) -> None:
    with served(project) as found:
        begin(page, found)
        body = '[CREATE_FILE path=".github/workflows/ci.yml"]\non: push\n[/CREATE_FILE]'
        paste(page, answer(found, 1, body))
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Reason").fill("we have no CI")
        dialog.get_by_role("button", name="No").click()
        expect(page.get_by_role("heading", name="Send request 2")).to_be_visible()
        assert not (project / ".github").exists()
        short = next((found.home / "outbox" / "short").glob("*_seq0002.txt")).read_text("utf-8")
        assert "we have no CI" in short


def test_an_operation_named_to_deceive_can_be_denied(page: Page, project: Path) -> None:
    """What waits is known by its place and time: its name is the model's, and is shown otherwise."""
    with served(project) as found:
        begin(page, found)
        operation = {"id": "--yes\u202e", "type": "shell", "command": "touch made; rm -rf made"}
        message = {"protocolVersion": "1.0", "type": "operations", "operations": [operation]}
        page.get_by_text("Type or paste it into a field").click()
        page.get_by_label("The chat's whole answer").fill(json.dumps(message))
        page.get_by_role("button", name="Apply it").click()
        dialog = page.get_by_role("dialog")
        expect(dialog.get_by_role("button", name="No")).to_be_enabled()
        # Words that come meanwhile leave the question as it is.
        words = ["say", found.session_id, "something else"]
        program = [sys.executable, "-m", "codingagent", "--home", str(found.home)]
        subprocess.run([*program, *words], check=True, cwd=project, stdout=subprocess.DEVNULL)
        expect(page.get_by_text("something else").first).to_be_attached()
        expect(dialog.get_by_role("button", name="Yes")).to_be_enabled()
        dialog.get_by_role("button", name="No").click()
        expect(page.get_by_role("heading", name="Send request 2")).to_be_visible()
        assert not (project / "made").exists()


def test_double_clicks_do_once_and_a_late_stop_stops_nothing(page: Page, project: Path) -> None:
    with served(project) as found:
        page.goto(found.address)
        page.get_by_label("Your task, or your question").fill("x")
        page.get_by_role("button", name="Write the first request").dblclick()
        expect(page.get_by_role("heading", name="Send request 1")).to_be_visible()
        assert found.session_id
        for number in (1, 2):
            paste(
                page, answer(found, number, f'[CREATE_FILE path="{number}.txt"]\nx\n[/CREATE_FILE]')
            )
            expect(page.get_by_role("heading", name=f"Send request {number + 1}")).to_be_visible()
        page.get_by_role("button", name="Undo this turn").dblclick()
        expect(page.locator("li.undone")).to_have_count(1)
        assert (project / "1.txt").exists()
        late = "fetch(location.pathname + '/stop', {method: 'POST'}).then(each => each.status)"
        assert page.evaluate(late) == 200
        stale = """fetch(location.pathname + '/undo', {method: 'POST', body: 'turn=2'})
            .then(each => each.text())"""
        assert "undone already" in page.evaluate(stale)
        paste(page, answer(found, 3, '[CREATE_FILE path="3.txt"]\nx\n[/CREATE_FILE]'))
        expect(page.get_by_role("heading", name="Send request 4")).to_be_visible()


def test_the_models_question_is_answered_in_the_field(page: Page, project: Path) -> None:
    with served(project) as found:
        begin(page, found)
        paste(page, answer(found, 1, "[MESSAGE]\nWhich tests do you mean?\n[/MESSAGE]"))
        expect(page.get_by_role("heading", name="The model asks")).to_be_visible()
        expect(page.locator(".asks blockquote")).to_contain_text("Which tests do you mean?")
        page.get_by_label("Your words").fill("Those of text.py")
        page.get_by_role("button", name="Say it").click()
        expect(page.locator("blockquote", has_text="Those of text.py")).to_be_visible()
        expect(page.get_by_label("Your words")).to_have_value("")
        request = next((found.home / "outbox").glob("*_seq0002.txt")).read_text("utf-8")
        assert "Those of text.py" in request


def test_words_secrets_and_questions(page: Page, project: Path) -> None:
    (project / ".env").write_text("API_TOKEN=ghp_1234567890abcdefghijklmnopqrstuvwxyz\n")
    with served(project) as found:
        page.goto(found.address)
        page.get_by_label("ask a question about the code").check()
        page.get_by_label("Your task, or your question").fill("What is in .env?")
        page.get_by_role("button", name="Write the first request").click()
        expect(page.get_by_role("heading", name="Send request 1")).to_be_visible()
        paste(page, answer(found, 1, "It holds a token."))
        expect(page.get_by_text("It holds a token.").first).to_be_visible()
        page.get_by_label("Your words").fill("Then write a README")
        page.get_by_label("have it done now").check()
        page.get_by_role("button", name="Go on").click()
        expect(page.get_by_role("heading", name="Send request 2")).to_be_visible()
        paste(page, answer(found, 2, '[READ_FILE path=".env"]'))
        expect(page.get_by_role("heading", name="Send request 3")).to_be_visible()
        short = next((found.home / "outbox" / "short").glob("*_seq0003.txt")).read_text("utf-8")
        assert "SECRET-" in short
        assert "ghp_" not in short
        page.get_by_text("Hidden secrets (1)").click()
        page.get_by_role("button", name="Send SECRET-").click()
        expect(page.get_by_role("button", name="Hide SECRET-")).to_be_visible()
