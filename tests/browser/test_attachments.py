"""Images and files in the chat: attached, sent as content parts, shown, and removed."""

import base64
import json

import pytest
from playwright.sync_api import Page, expect

from gateway.models import Message
from tests.browser.axe import serious_findings
from tests.browser.conftest import Visitor
from tests.browser.page_actions import ask
from tests.browser.puppet_model import PuppetModel

pytestmark = pytest.mark.browser
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
DOT = {"name": "dot.png", "mimeType": "image/png", "buffer": PNG}
NOTES = {"name": "notes.txt", "mimeType": "text/plain", "buffer": "Köchin: Ada".encode()}
BINARY = {"name": "tool.bin", "mimeType": "application/octet-stream", "buffer": b"\x00\xff\xfe"}


def attach(page: Page, *files: dict[str, object]) -> None:
    page.locator("#files").set_input_files(list(files))  # type: ignore[arg-type]


def sent_text(page: Page) -> str:
    return page.locator(".entry--you").last.locator(".prose--said").inner_text()


def test_an_image_and_a_file_are_sent_with_the_message(chat: Page, puppet: PuppetModel) -> None:
    puppet.answer("A dot.")
    attach(chat, DOT, NOTES)
    draft = chat.get_by_role("list", name="Attached").first
    expect(draft.get_by_role("img", name="dot.png")).to_be_visible()
    expect(draft).to_contain_text("notes.txt")
    chat.get_by_role("textbox", name="Message to").fill("What is this?")
    chat.keyboard.press("Enter")
    expect(chat.locator("[data-prose]").last).to_have_text("A dot.")
    message = Message.objects.get(role="user")
    assert [part["type"] for part in message.parts] == ["text", "image_url", "text"]
    assert message.parts[2]["text"] == "[File notes.txt]\nKöchin: Ada"
    assert json.dumps(puppet.requests[-1].messages[-1]["content"]) == json.dumps(message.parts)
    picture = chat.locator(".entry--you").last.get_by_role("img")
    expect(picture).to_be_visible()
    chat.reload()
    picture = chat.locator(".entry--you").last.get_by_role("img")
    expect(picture).to_be_visible()
    expect(picture).to_have_js_property("naturalWidth", 1)  # as soon as it is loaded
    assert sent_text(chat) == "What is this?"
    expect(chat.locator(".entry--you").last).to_contain_text("notes.txt")
    assert serious_findings(chat) == []


def test_an_image_can_be_sent_without_text(chat: Page, puppet: PuppetModel) -> None:
    puppet.answer("A dot.")
    attach(chat, DOT)
    expect(chat.get_by_role("list", name="Attached").first).to_be_visible()
    chat.get_by_role("textbox", name="Message to").focus()
    chat.keyboard.press("Enter")
    expect(chat.locator("[data-prose]").last).to_have_text("A dot.")
    expect(chat.get_by_role("list", name="Attached").first.get_by_role("img")).to_be_visible()


def test_the_attachments_of_a_message_are_shown_while_it_is_edited(chat: Page, puppet: PuppetModel) -> None:
    puppet.answer("A dot.")
    attach(chat, DOT)
    expect(chat.get_by_role("list", name="Attached").first).to_be_visible()
    ask(chat, "What is this?")
    chat.get_by_role("button", name="Edit your message").click()
    expect(chat.get_by_role("textbox", name="Edit your message")).to_be_visible()
    expect(chat.locator(".entry--you").get_by_role("list", name="Attached").get_by_role("img")).to_be_visible()
    assert serious_findings(chat) == []


def test_attachments_can_be_removed_and_unsupported_files_are_refused(chat: Page, puppet: PuppetModel) -> None:
    attach(chat, DOT, BINARY)
    refusal = "tool.bin cannot be attached. Pictures may be PNG, JPEG, GIF or WebP; other files PDF or text in UTF-8."
    expect(chat.get_by_text(refusal)).to_be_visible()
    attach(chat, {"name": "empty.pdf", "mimeType": "application/pdf", "buffer": b""})
    expect(chat.get_by_text("empty.pdf is empty, or a folder.")).to_be_visible()
    attach(chat, {"name": "log.txt", "mimeType": "text/plain", "buffer": b"x" * 100_001})
    expect(chat.get_by_text("log.txt is too long: a text file may have 100,000 characters.")).to_be_visible()
    attach(chat, {"name": "rows.json", "mimeType": "application/json", "buffer": b"1" * 500_000})
    expect(chat.get_by_text("rows.json is too long: a text file may have 100,000 characters.")).to_be_visible()
    chat.get_by_role("button", name="Remove dot.png").click()
    expect(chat.locator("#attached")).to_be_hidden()
    expect(chat.get_by_role("textbox", name="Message to")).to_be_focused()


def test_a_damaged_picture_and_a_folder_are_refused_without_losing_the_other_files(chat: Page) -> None:
    attach(chat, {"name": "torn\u202e.png", "mimeType": "image/png", "buffer": PNG[:20]}, DOT)
    expect(chat.get_by_text("torn.png could not be read.")).to_be_visible()
    expect(chat.get_by_role("button", name="Remove dot.png")).to_be_visible()
    chat.evaluate(
        """() => {
          const folder = new File(["x"], "holiday", { type: "" });
          folder.arrayBuffer = () => Promise.reject(new DOMException("", "NotReadableError"));
          const event = new Event("drop", { bubbles: true, cancelable: true });
          const notes = new File(["y"], "notes.txt", { type: "text/plain" });
          event.dataTransfer = { types: ["Files"], files: [folder, notes] };
          document.querySelector(".topbar").dispatchEvent(event);
          window.handled = event.defaultPrevented;
        }"""
    )
    expect(chat.get_by_text("holiday could not be read.")).to_be_visible()
    expect(chat.get_by_role("button", name="Remove notes.txt")).to_be_visible()
    assert chat.evaluate("window.handled")  # otherwise the browser would open the file in place of the page


def test_the_composer_shows_that_files_may_be_dropped(chat: Page) -> None:
    def drag(event: str, kind: str = "Files") -> None:
        chat.evaluate(
            """([name, kind]) => {
              const event = new Event(name, { bubbles: true, cancelable: true });
              event.dataTransfer = { types: [kind], files: [new File(["y"], "notes.txt", { type: "text/plain" })] };
              document.querySelector(".topbar").dispatchEvent(event);
            }""",
            [event, kind],
        )

    box = chat.locator(".composer__box")
    drag("dragover", "text/plain")
    expect(box).to_have_css("outline-style", "none")
    drag("dragover")
    expect(box).to_have_css("outline-style", "dashed")
    drag("dragleave")
    expect(box).to_have_css("outline-style", "none")
    drag("dragover")
    drag("drop")
    expect(box).to_have_css("outline-style", "none")
    expect(chat.get_by_role("button", name="Remove notes.txt")).to_be_visible()


def test_too_many_files_are_refused_once(chat: Page) -> None:
    attach(chat, *({"name": f"{n}.txt", "mimeType": "text/plain", "buffer": b"x"} for n in range(13)))
    expect(chat.get_by_text("A message can have at most 10 attachments.")).to_be_visible()
    expect(chat.locator("#attached li")).to_have_count(10)
    expect(chat.locator(".toast")).to_have_count(1)


def test_cells_copied_from_a_spreadsheet_are_pasted_as_text(chat: Page) -> None:
    """Office programs also put a picture of the selection on the clipboard."""
    prevented = chat.evaluate(
        """() => {
          const data = new DataTransfer();
          data.setData("text/plain", "Tea\\t2.50");
          data.setData("text/html", "<table><tr><td>Tea<td>2.50</table>");
          data.items.add(new File(["x"], "image.png", { type: "image/png" }));
          const event = new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true });
          document.getElementById("message").dispatchEvent(event);
          return event.defaultPrevented;
        }"""
    )
    assert not prevented
    expect(chat.locator("#attached")).to_be_hidden()


def test_a_pasted_image_is_attached(chat: Page, puppet: PuppetModel) -> None:
    chat.get_by_role("textbox", name="Message to").focus()
    chat.evaluate(
        """bytes => {
          const transfer = new DataTransfer();
          transfer.items.add(new File([new Uint8Array(bytes)], "pasted.png", { type: "image/png" }));
          document.activeElement.dispatchEvent(
            new ClipboardEvent("paste", { clipboardData: transfer, bubbles: true, cancelable: true }));
        }""",
        list(PNG),
    )
    expect(chat.get_by_role("img", name="pasted.png")).to_be_visible()


def test_regenerating_and_editing_keep_the_image(chat: Page, puppet: PuppetModel, alices: Visitor) -> None:
    puppet.answer("A dot.")
    attach(chat, DOT)
    chat.get_by_role("textbox", name="Message to").fill("What is this?")
    chat.keyboard.press("Enter")
    expect(chat.locator("[data-prose]").last).to_have_text("A dot.")
    puppet.answer("Still a dot.")
    chat.get_by_role("button", name="Answer again").click()
    expect(chat.locator("[data-prose]").last).to_have_text("Still a dot.")
    assert [part["type"] for part in puppet.requests[-1].messages[-1]["content"]] == ["text", "image_url"]
    puppet.answer("Red.")
    chat.get_by_role("button", name="Edit your message").click()
    chat.locator("[data-message-editor] textarea").fill("Its colour?")
    chat.get_by_role("button", name="Send", exact=True).click()
    expect(chat.locator("[data-prose]").last).to_have_text("Red.")
    content = puppet.requests[-1].messages[-1]["content"]
    assert (content[0]["text"], content[1]["type"]) == ("Its colour?", "image_url")
    expect(chat.locator(".entry--you").last.get_by_role("img")).to_be_visible()


def test_a_message_waits_for_the_file_that_is_being_read(chat: Page, puppet: PuppetModel) -> None:
    puppet.answer("Notes.")
    chat.evaluate("() => { File.prototype.arrayBuffer = () => new Promise((done) => (window.read = done)) }")
    attach(chat, NOTES)
    chat.locator("[data-example]").first.click()
    chat.evaluate("() => read(new Uint8Array([255]).buffer)")
    expect(chat.get_by_text("notes.txt cannot be attached.")).to_be_visible()
    chat.wait_for_timeout(200)
    expect(chat.locator(".turn")).to_have_count(0)  # it is not sent without the file
    attach(chat, NOTES)
    chat.get_by_role("textbox", name="Message to").fill("What is this?")
    chat.keyboard.press("Enter")
    chat.evaluate("() => read(new TextEncoder().encode('Ada').buffer)")
    expect(chat.locator("[data-prose]").last).to_have_text("Notes.")
    assert [part["text"] for part in Message.objects.get(role="user").parts] == [
        "What is this?",
        "[File notes.txt]\nAda",
    ]
