"""The loop in a real browser: real clicks, copies and pastes against a page that is really served."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Browser, Locator, Page, expect

from tests.page.browsing import TASK, Served, answer, begin, browser, drop, paste, served
from tests.sandboxes import needs_bwrap


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as found:
        yield found


def test_the_demo_from_begin_to_done(page: Page, project: Path) -> None:
    with served(project) as found:
        page.goto(found.address)
        page.get_by_label("Your task, or your question").fill(TASK)
        assert "token" not in page.url
        expect(page.get_by_text("durations/text.py")).to_be_visible()
        page.get_by_role("button", name="Write the first request").click()
        expect(page.get_by_role("heading", name="Send request 1")).to_be_visible()
        page.get_by_role("button", name="Copy", exact=True).click()
        expect(page.get_by_text("Copied: paste it into the chat")).to_be_visible()
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied == next((found.home / "outbox").glob("*_seq0001.txt")).read_text("utf-8")
        paste(page, found.reply(1))
        expect(page.get_by_role("heading", name="Send request 2")).to_be_visible()
        page.get_by_role("button", name="Copy", exact=True).click()
        expect(page.get_by_text("Copied: paste it into the same chat")).to_be_visible()
        short = next((found.home / "outbox" / "short").glob("*_seq0002.txt"))
        assert page.evaluate("navigator.clipboard.readText()") == short.read_text("utf-8")
        paste(page, found.reply(2))
        expect(page.get_by_role("heading", name="Done", exact=True)).to_be_visible()
        assert "CLOCK" in (project / "durations" / "text.py").read_text("utf-8")
        page.get_by_text("What it changed (2)").click()
        expect(page.get_by_text("CLOCK = re.compile").first).to_be_visible()
        page.locator("summary", has_text="Commit").click()
        page.get_by_label("Message").fill("Add up the parts")
        page.get_by_role("button", name="Commit").click()
        expect(page.get_by_text("committed on")).to_be_visible()
    log = subprocess.run(
        ["git", "log", "-1", "--format=%s"], cwd=project, capture_output=True, check=True
    )
    assert log.stdout.strip() == b"Add up the parts"


def test_undo_and_redo_by_clicking_a_turn(page: Page, project: Path) -> None:
    with served(project) as found:
        begin(page, found)
        for number in (1, 2):
            body = f'[CREATE_FILE path="{number}.txt"]\nx\n[/CREATE_FILE]'
            paste(page, answer(found, number, body))
            expect(page.get_by_role("heading", name=f"Send request {number + 1}")).to_be_visible()
        page.get_by_role("button", name="Undo this and 1 later").click()
        expect(page.locator("li.undone")).to_have_count(2)
        assert not (project / "1.txt").exists()
        assert not (project / "2.txt").exists()
        page.get_by_role("button", name="Redo what was undone").click()
        expect(page.locator("li.undone")).to_have_count(0)
        assert (project / "1.txt").exists()


def test_a_reload_in_the_middle_of_a_command_and_stop(page: Page, project: Path) -> None:
    needs_bwrap()
    with served(project) as found:
        begin(page, found)
        command = "echo begun; echo again >> times; sleep 1000"
        body = f'[RUN_COMMAND timeout="1200"]\n{command}\n[/RUN_COMMAND]'
        paste(page, answer(found, 1, body))
        expect(page.locator("#output")).to_contain_text("begun")
        page.reload()
        expect(page.locator("#output")).to_contain_text("begun")
        page.get_by_role("button", name="Stop").click()
        expect(page.get_by_role("heading", name="Stopped in the middle")).to_be_visible()
        page.get_by_role("button", name="Go on").click()
        expect(page.get_by_role("heading", name="Send request 2")).to_be_visible()
        assert (project / "times").read_text("utf-8") == "again\n"
        expect(page.get_by_text("interrupted").first).to_be_visible()


def test_two_tabs_and_a_terminal_show_one_session(page: Page, project: Path) -> None:
    with served(project) as found:
        begin(page, found)
        other = page.context.new_page()
        other.goto(page.url)
        expect(other.get_by_role("heading", name="Send request 1")).to_be_visible()
        text = answer(found, 1, '[CREATE_FILE path="a.txt"]\nx\n[/CREATE_FILE]')
        paste(page, text)
        expect(other.get_by_role("heading", name="Send request 2")).to_be_visible()
        paste(other, text)
        expect(other.get_by_text("rejected:")).to_be_visible()
        words = ["say", found.session_id, "from a terminal"]
        program = [sys.executable, "-m", "codingagent", "--home", str(found.home)]
        subprocess.run([*program, *words], check=True, cwd=project, stdout=subprocess.DEVNULL)
        for each in (page, other):
            expect(each.locator("blockquote", has_text="from a terminal")).to_be_visible()
        page.get_by_role("button", name="Withdraw the last words").click()
        expect(other.locator("blockquote", has_text="from a terminal")).to_have_count(0)


def test_a_killed_page_loses_nothing(page: Page, project: Path) -> None:
    found = Served(project)
    found.start()
    begin(page, found)
    found.kill()
    text = answer(found, 1, '[CREATE_FILE path="a.txt"]\nx\n[/CREATE_FILE]')
    with served(project) as again:
        page.goto(again.address)
        page.get_by_role("link", name="The tests of this package fail").click()
        paste(page, text)
        expect(page.get_by_role("heading", name="Send request 2")).to_be_visible()
        assert again.end() == 0


HOSTILE = """[MESSAGE]
<script>document.title = "owned"</script><img src=x onerror="document.title='owned'">
<form action="https://evil.invalid"><button>click</button></form> \u202egnp.exe\u2066
[/MESSAGE]
[CREATE_FILE path="a&lt;b'c.html"]
<script>document.title = "owned"</script>
{{ 7 * 7 }} </textarea></pre></dialog><h1 id="planted">planted</h1>
[/CREATE_FILE]"""


def test_an_answer_full_of_html_is_text(page: Page, project: Path) -> None:
    with served(project) as found:
        begin(page, found, "<script>document.title='owned'</script> and <h1 id='planted'>x</h1>")
        paste(page, answer(found, 1, HOSTILE))
        expect(page.get_by_role("heading", name="Send request 2")).to_be_visible()
        page.get_by_text("What it changed").click()
        expect(page.get_by_text("planted").first).to_be_visible()
        page.get_by_text("Texts").first.click()
        page.get_by_role("button", name="Answer", exact=True).click()
        expect(page.locator("pre", has_text="onerror")).to_be_visible()
        assert page.locator("#planted").count() == 0
        assert page.locator("main script, main img, main form[action]").count() == 0
        assert page.title() != "owned"
        assert "\u202e" not in page.locator("main").inner_text()


def _is_accessible_and_fits(page: Page, view: str) -> None:
    shots = os.environ.get("SCREENSHOTS")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        for width in (400, 800, 1600):
            page.set_viewport_size({"width": width, "height": 900})
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, f"{view} is {wide} wide at {width}"
            if shots:
                name = f"{view}-{width}-{scheme}.png"
                page.screenshot(path=Path(shots) / name, full_page=True)
        violations = Axe().run(page).response["violations"]
        told = [(v["id"], [n["html"][:120] for n in v["nodes"]]) for v in violations]
        assert not told, f"{view}, {scheme}: {told}"


def test_every_view_is_accessible_and_fits(page: Page, project: Path) -> None:
    """Without a violation that axe-core finds, light and dark, from 400 to 1,600 pixels."""
    with served(project) as found:
        page.goto(found.address)
        page.get_by_label("Your task, or your question").fill(TASK)
        expect(page.get_by_text("durations/text.py")).to_be_visible()
        _is_accessible_and_fits(page, "begin")
        page.get_by_role("button", name="Write the first request").click()
        expect(page.get_by_role("heading", name="Send request 1")).to_be_visible()
        _is_accessible_and_fits(page, "send")
        page.get_by_label("show what an answer will do").check()
        paste(page, found.reply(2).replace('sequence="2"', 'sequence="1"'))
        expect(page.get_by_text("What this answer will do")).to_be_visible()
        _is_accessible_and_fits(page, "review")
        page.get_by_role("button", name="Drop this answer").click()
        page.get_by_label("show what an answer will do").uncheck()
        body = '[CREATE_FILE path=".github/workflows/ci.yml"]\non: push\n[/CREATE_FILE]'
        done = '[CREATE_FILE path="a.py"]\nx = 1\n[/CREATE_FILE]\n[DONE]\nMade it.\n[/DONE]'
        paste(page, answer(found, 1, body))
        dialog = page.get_by_role("dialog")
        expect(dialog).to_be_visible()
        _is_accessible_and_fits(page, "approval")
        dialog.get_by_role("button", name="Yes").click()
        expect(page.get_by_role("heading", name="Send request 2")).to_be_visible()
        paste(page, answer(found, 2, done))
        expect(page.get_by_role("heading", name="Done", exact=True)).to_be_visible()
        page.locator("#turn-2").get_by_text("What it changed").click()
        expect(page.get_by_text("side by side", exact=True)).to_be_visible()
        _is_accessible_and_fits(page, "done")


def test_the_whole_loop_by_keyboard(page: Page, project: Path) -> None:
    with served(project) as found:
        page.goto(found.address)
        page.get_by_label("Your task, or your question").wait_for()
        page.keyboard.type("Make a file")
        write = page.get_by_role("button", name="Write the first request")
        _tab_to(page, write)
        page.keyboard.press("Enter")
        copy = page.get_by_role("button", name="Copy", exact=True)
        copy.wait_for()
        _tab_to(page, copy)
        page.keyboard.press("Enter")
        expect(page.get_by_text("Copied: paste it into the chat")).to_be_visible()
        text = answer(found, 1, '[CREATE_FILE path="a.txt"]\nx\n[/CREATE_FILE]')
        page.evaluate("text => navigator.clipboard.writeText(text)", text)
        page.keyboard.press("Control+v")
        expect(page.get_by_role("heading", name="Send request 2")).to_be_visible()
        assert (project / "a.txt").exists()


def _tab_to(page: Page, wanted: Locator) -> None:
    for _ in range(40):
        if wanted.evaluate("each => each === document.activeElement"):
            return
        page.keyboard.press("Tab")
    pytest.fail("no Tab leads there")


def test_the_first_request_holds_what_is_ticked(
    page: Page, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODINGAGENT_CHAT_PAGES", "https://chat.example/new")
    (project / "docs").mkdir()
    (project / "docs" / "notes.txt").write_text("Notes of nothing in common.\n")
    (project / "other.csv").write_text("a,b\n1,2\n")
    with served(project) as found:
        page.goto(found.address)
        page.get_by_label("Your task, or your question").fill("Make parse() accept seconds")
        page.get_by_label("durations/text.py").uncheck()
        expect(page.get_by_text("left out")).to_be_visible()
        page.get_by_text("Add files").click()
        page.get_by_text("docs/", exact=True).click()
        page.get_by_label("notes.txt", exact=True).check()
        drop(page, "other.csv", b"a,b\n1,2\n")
        expect(page.locator("#attached")).to_contain_text("other.csv")
        drop(page, "absent.txt", b"of another folder")
        expect(page.get_by_text("absent.txt is not in")).to_be_visible()
        page.get_by_label("The command that checks").fill(
            "python3 -m unittest discover -s tests -t ."
        )
        page.get_by_role("button", name="Run it now").click()
        expect(page.get_by_text("It fails now, before any change")).to_be_visible()
        page.get_by_role("button", name="Write the first request").click()
        expect(page.get_by_role("heading", name="Send request 1")).to_be_visible()
        text = next((found.home / "outbox").glob("*_seq0001.txt")).read_text("utf-8")
        assert "Notes of nothing in common." in text
        assert "--- other.csv" in text
        assert "PART = " not in text
        link = page.get_by_role("link", name="Open chat.example")
        assert link.get_attribute("href") == "https://chat.example/new"
        assert link.get_attribute("rel") == "noopener noreferrer"


PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


def test_a_picture_lies_beside_the_request(page: Page, project: Path) -> None:
    (project / "shot.png").write_bytes(PNG)
    with served(project) as found:
        page.goto(found.address)
        page.get_by_label("Your task, or your question").fill("What is in shot.png?")
        page.get_by_text("Add files").click()
        page.get_by_label("shot.png", exact=True).check()
        page.get_by_role("button", name="Write the first request").click()
        expect(page.get_by_text("Attach beside it")).to_be_visible()
        with page.expect_download() as download:
            page.get_by_role("link", name="shot.png").click()
        assert download.value.path().read_bytes() == PNG
        with page.expect_download() as download:
            page.get_by_role("link", name="Download, or drag").click()
        outbox = next((found.home / "outbox").glob("*_seq0001.txt"))
        assert download.value.path().read_bytes() == outbox.read_bytes()


def test_a_file_before_and_after_a_turn(page: Page, project: Path) -> None:
    with served(project) as found:
        begin(page, found)
        paste(page, found.reply(2).replace('sequence="2"', 'sequence="1"'))
        page.get_by_text("What it changed (2)").click()
        page.get_by_text("side by side", exact=True).check()
        expect(page.locator("table.sides").first).to_be_visible()
        with page.context.expect_page() as opened:
            page.get_by_role("link", name="before and after").first.click()
        text = opened.value
        expect(text.get_by_role("heading", name="after")).to_be_visible()
        before, after = text.locator("pre").all_inner_texts()
        assert "CLOCK" in after
        assert "CLOCK" not in before
        told = Axe().run(text).response["violations"]
        assert not told
        page.locator("section.file", has_text="durations/text.py").get_by_role("button").click()
        expect(page.get_by_text("restored durations/text.py")).to_be_visible()
        assert "CLOCK" not in (project / "durations" / "text.py").read_text("utf-8")


def test_over_ssh_the_line_that_brings_the_page_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSH_CONNECTION", "192.0.2.1 1 192.0.2.2 22")
    monkeypatch.delenv("DISPLAY", raising=False)
    found = Served(tmp_path)
    found.start()
    first = found.address
    assert found.end() == 0
    assert first.startswith("THIS_MACHINE")


def test_a_session_that_is_closed_in_a_terminal_stays_closed(page: Page, project: Path) -> None:
    with served(project) as found:
        begin(page, found)
        program = [sys.executable, "-m", "codingagent", "--home", str(found.home)]
        subprocess.run([*program, "close", found.session_id], check=True, cwd=project)
        expect(page.get_by_role("heading", name="Closed", exact=True)).to_be_visible()
        done = subprocess.run(
            [*program, "resume", found.session_id, "--unless-done"], cwd=project, check=True
        )
        assert done.returncode == 0
        expect(page.get_by_role("heading", name="Closed", exact=True)).to_be_visible()
