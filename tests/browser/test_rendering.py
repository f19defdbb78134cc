"""How messages look in a real browser: an answer while it streams and afterwards, wide tables, formulas, long
messages."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.axe import serious_findings
from tests.browser.conftest import Visitor, owner_of
from tests.browser.conversations import conversation_make
from tests.browser.page_actions import expect_status, open_conversation, send
from tests.browser.puppet_model import PuppetModel

pytestmark = pytest.mark.browser

ANSWER = r"""# Heat

The **energy** is \(E = mc^2\), see https://a.example/b and [the paper](https://c.example "x")[^1].

1. First
   - nested *once*
     - nested twice
2. Second with `code`

- [ ] open task
- [x] done task

| Column | Default value | Price | Another column | One more | And one more | The seventh | The eighth |
|:--|:-:|--:|--|--|--|--|--|
| Conductivity | unconstrained | $12.50 | incomprehensible | responsibilities | 1,234,567.89 | words | ends |
| ~~Old~~ | x | $1,000.00 | y | z | 2 | 3 | 4 |

```python
def heat(mass: float) -> float:  # joule
    return mass * 299_792_458**2
```

\[
\int_0^\infty e^{-x^2}\,dx = \frac{\sqrt{\pi}}{2}
\]

> Costs $5 and $10.

[^1]: A footnote with *words*.
"""
HOSTILE = (
    "<img src=x onerror=alert(1)> [x](javascript:alert(1)) ![y](https://evil.example/y.png)\n\n"
    r"\(\text{<img src=x onerror=alert(1)>} \href{javascript:alert(1)}{z}\)" + "\n\n<script>alert(1)</script>"
)
_WHOLE_WORDS = """box => [...box.querySelectorAll("th, td")].every((cell) => {
  const range = document.createRange();
  const text = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
  while (text.nextNode()) {
    for (const word of text.currentNode.data.matchAll(/\\S+/g)) {
      range.setStart(text.currentNode, word.index);
      range.setEnd(text.currentNode, word.index + word[0].length);
      if (range.getClientRects().length > 1) return false;
    }
  }
  return true;
})"""
# The distance of an element's text from the edges of its content box.
_GAPS = """element => {
  const range = document.createRange();
  range.selectNodeContents(element);
  const [text, box] = [range.getBoundingClientRect(), element.getBoundingClientRect()];
  const { paddingLeft, paddingRight, borderLeftWidth, borderRightWidth } = getComputedStyle(element);
  const inner = (one, two) => parseFloat(one) + parseFloat(two);
  return { left: text.left - box.left - inner(paddingLeft, borderLeftWidth),
           right: box.right - text.right - inner(paddingRight, borderRightWidth) };
}"""
_PROSE = """prose => {
  const copy = prose.cloneNode(true);
  for (const button of copy.querySelectorAll("[data-copy-code]")) button.remove();
  return copy.innerHTML;
}"""


def _stream(puppet: PuppetModel, text: str, size: int = 7) -> None:
    for at in range(0, len(text), size):
        puppet.say(text[at : at + size])


def test_an_answer_looks_the_same_while_streaming_and_when_complete(chat: Page, puppet: PuppetModel) -> None:
    chat.evaluate(
        """() => {
          const log = document.getElementById("log");
          window.jumps = [];
          new MutationObserver((changes) => changes.forEach((change) => change.removedNodes.forEach((node) => {
            const prose = node.querySelector?.("[data-prose]");
            if (prose) window.jumps.push(prose.innerHTML);
          }))).observe(log, { childList: true, subtree: true });
        }"""
    )
    send(chat, "explain heat")
    _stream(puppet, ANSWER)
    turn = chat.locator(".turn").last
    expect(turn.locator(".footnote")).to_contain_text("words")
    expect(turn.locator("math")).to_have_count(2)
    expect(turn.locator("pre .k").first).to_have_text("def")
    expect(turn.locator("li li li")).to_have_text("nested twice")
    expect(turn.get_by_role("checkbox", name="Done")).to_be_checked()
    expect(turn.locator("sup").first).to_have_text("1")
    live = chat.evaluate("document.querySelector('#ledger').getBoundingClientRect().height")
    live_prose = turn.locator("[data-prose]").bounding_box()
    puppet.end()
    expect_status(chat, "Answer complete")
    expect(chat.locator("[aria-busy]")).to_have_count(0)
    final = chat.evaluate("document.querySelector('#ledger').getBoundingClientRect().height")
    final_prose = turn.locator("[data-prose]").bounding_box()
    assert live_prose is not None
    assert final_prose is not None
    assert abs(final_prose["height"] - live_prose["height"]) <= 3
    assert abs(final - live) <= 6
    last = chat.evaluate("window.jumps.at(-1)")
    shown = turn.locator("[data-prose]").evaluate(_PROSE)
    assert "".join(last.split()) == "".join(shown.split())


def test_what_is_selected_in_an_answer_stays_selected_when_it_is_complete(chat: Page, puppet: PuppetModel) -> None:
    send(chat, "tell me")
    puppet.say("First some **strong** words.\n\n- one\n- two\n\nThe last ")
    last = chat.locator("[data-prose] > p").last
    expect(last).to_have_text("The last")
    chat.evaluate(
        """() => {
          const [first, item] = document.querySelectorAll("[data-prose] > p:first-child, [data-prose] li");
          getSelection().setBaseAndExtent(item.firstChild, 3, first.firstChild, 6);
        }"""
    )
    selected = chat.evaluate("[String(getSelection()).split(/\\s+/).join(' '), getSelection().focusNode.data]")
    assert selected == ["some strong words. one", "First some "]
    puppet.answer("words.")
    expect_status(chat, "Answer complete")
    expect(chat.get_by_role("button", name="Copy answer")).to_be_visible()
    assert chat.evaluate("[String(getSelection()).split(/\\s+/).join(' '), getSelection().focusNode.data]") == selected


def test_what_is_selected_in_the_growing_paragraph_stays_selected(chat: Page, puppet: PuppetModel) -> None:
    send(chat, "tell me")
    puppet.say("First, stop the service. Then ")
    paragraph = chat.locator("[data-answer] [data-prose] p").last
    expect(paragraph).to_have_text("First, stop the service. Then")
    paragraph.evaluate("p => getSelection().setBaseAndExtent(p.firstChild, 7, p.firstChild, 23)")
    puppet.say("copy **all** of it.")
    expect(paragraph).to_have_text("First, stop the service. Then copy all of it.")
    assert chat.evaluate("String(getSelection())") == "stop the service"
    puppet.end()
    expect_status(chat, "Answer complete")
    assert chat.evaluate("String(getSelection())") == "stop the service"


def test_code_that_was_scrolled_sideways_stays_so_while_it_grows_and_when_it_is_complete(
    chat: Page, puppet: PuppetModel
) -> None:
    send(chat, "go")
    puppet.say("```text\n" + "wide " * 100 + "\n")
    code = chat.locator(".code pre")
    expect(code).to_contain_text("wide")
    code.focus()
    code.evaluate("box => { box.scrollLeft = 150; }")
    puppet.say("second line\n")
    expect(code).to_contain_text("second line")
    expect(code).to_be_focused()
    assert code.evaluate("box => box.scrollLeft") == 150
    puppet.say("```\n\nDone.")
    puppet.end()
    expect_status(chat, "Answer complete")
    expect(chat.locator(".turn")).to_have_attribute("data-state", "completed")
    expect(code).to_be_focused()
    assert code.evaluate("box => box.scrollLeft") == 150


def test_each_paragraph_begins_at_the_side_where_its_language_begins(alices: Visitor) -> None:
    """Hebrew at the right edge, with its list markers; English beside it at the left edge."""
    answer = "שלום עולם!\n\nHello world!\n\n- פריט\n\n`ls -l`\n\n| שם | ערך |\n|---|---|\n| א | 1 |"
    page = open_conversation(alices, ("שלום (world)!", answer), title="שיחה")
    turn = page.locator(".turn")
    said, hebrew, english, item = (
        turn.locator(".prose--said, .entry--you .prose > p"),
        turn.locator("[data-prose] > p").nth(0),
        turn.locator("[data-prose] > p").nth(1),
        turn.locator("[data-prose] li"),
    )
    assert said.evaluate(_GAPS)["right"] < 1
    assert hebrew.evaluate(_GAPS)["right"] < 1
    assert english.evaluate(_GAPS)["left"] < 1
    assert item.evaluate(_GAPS)["right"] < 1
    header, number = turn.locator("th").last, turn.locator("td").last  # a number has no direction of its own
    assert abs(header.evaluate(_GAPS)["right"] - number.evaluate(_GAPS)["right"]) < 1
    assert item.evaluate("item => getComputedStyle(item.parentElement).paddingRight") != "0px"
    composer = page.get_by_label("Message to assistant")
    assert composer.evaluate("area => getComputedStyle(area).unicodeBidi") == "plaintext"


def test_wide_tables_scroll_in_their_own_box_without_breaking_words(alices: Visitor) -> None:
    page = open_conversation(alices, ("show a table", ANSWER))
    box = page.locator(".turn .table").last
    for width in (1440, 390, 320):
        page.set_viewport_size({"width": width, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert box.evaluate(_WHOLE_WORDS)
        if width < 1000:
            assert box.evaluate("box => box.scrollWidth > box.clientWidth")
            box.focus()  # so that it can be scrolled with the keyboard
            assert box.evaluate("box => box === document.activeElement")
        assert serious_findings(page) == []


LONG_FORMULA = "+".join(f"x_{{{number}}}" for number in range(1, 41)) + "=0"


def test_an_inline_formula_stands_on_the_line_of_its_text_and_a_long_one_scrolls_in_its_own_box(
    alices: Visitor,
) -> None:
    """A box that scrolls stands with its lower edge on the line, unless it is a flex box."""
    boxed = "short \\(a_{1}+b_{2}\\) long \\(a_{1}+b_{2}+c_{3}+d_{4}\\) end"
    answer = f"The sum \\({LONG_FORMULA}\\) holds if \\(x_1=0\\) does.\n\n- also \\({LONG_FORMULA}\\)"
    page = open_conversation(alices, ("box", boxed), ("add", answer))
    first, last = page.locator(".turn").first, page.locator(".turn").last
    bottoms = first.locator("math").evaluate_all("all => all.map((math) => math.getBoundingClientRect().bottom)")
    assert first.locator("span.formula").count() == 1
    assert abs(bottoms[0] - bottoms[1]) <= 1
    boxes = last.locator("span.formula")
    expect(boxes).to_have_count(2)
    for width in (1280, 360):
        page.set_viewport_size({"width": width, "height": 740})
        assert page.locator("#log").evaluate("log => log.scrollWidth - log.clientWidth") == 0
        for box in boxes.all():
            assert box.evaluate("box => box.scrollWidth > box.clientWidth")
            assert box.evaluate("box => box.scrollHeight <= box.clientHeight"), "nothing is cut off"
        boxes.first.focus()  # so that it can be scrolled with the keyboard
        assert boxes.first.evaluate("box => box === document.activeElement")
        assert serious_findings(page) == []


def test_footnotes_link_both_ways_with_unique_ids_per_answer(alices: Visitor) -> None:
    turn = ("again", "Word[^1].\n\n[^1]: Explained.")
    chat = open_conversation(alices, turn, turn)
    ids = chat.evaluate("[...document.querySelectorAll('[id]')].map((element) => element.id)")
    assert len(ids) == len(set(ids))
    link = chat.get_by_role("link", name="Footnote 1", exact=True).last
    link.click()
    expect(chat.locator(".footnote:target")).to_contain_text("Explained.")
    chat.get_by_role("link", name="Back to footnote 1 in the text").last.click()
    expect(chat.locator("sup a:target")).to_have_text("1")


def test_hostile_markup_is_inert_while_streaming(chat: Page, alices: Visitor, puppet: PuppetModel) -> None:
    chat.on("dialog", lambda dialog: alices.errors.append(dialog.message))
    send(chat, "attack me")
    _stream(puppet, HOSTILE)
    answer = chat.locator("[data-answer]").last
    expect(answer).to_contain_text("<script>alert(1)</script>")
    for selector in ("img", "script", "[onerror]", "[href^='javascript']"):
        expect(answer.locator(f"[data-prose] {selector}")).to_have_count(0)
    puppet.end()
    expect_status(chat, "Answer complete")


def test_a_copied_selection_contains_the_latex_of_its_formulas(alices: Visitor) -> None:
    session = conversation_make(
        owner_of("alice"), ("formula", "Then \\(a^2\\) holds.\n\n$$\n\\frac{1}{2}\n$$\n\n```sh\nls\n```")
    )
    chat = alices.open(f"/c/{session.pk}/")
    expect(chat.get_by_role("button", name="Send message")).to_be_enabled()  # the page's script has run
    copied = chat.evaluate(
        """() => {
          getSelection().selectAllChildren(document.querySelector(".turn:last-of-type [data-prose]"));
          const data = new DataTransfer();
          document.querySelector("[data-prose] math").dispatchEvent(
            new ClipboardEvent("copy", { bubbles: true, cancelable: true, clipboardData: data }));
          return data.getData("text/plain");
        }"""
    )
    assert copied.split("\n")[0] == "Then \\(a^2\\) holds."
    assert "$$\\frac{1}{2}$$" in copied
    for selected in (copied, chat.evaluate("String(getSelection())")):
        assert "ls" in selected
        assert "Copy" not in selected  # the button


def test_a_long_paste_is_folded_and_can_be_unfolded(chat: Page, puppet: PuppetModel) -> None:
    pasted = "\n".join(f"line {number} of a log that somebody pasted" for number in range(140))
    send(chat, pasted)
    message = chat.locator(".entry--you").last
    unfold = message.get_by_role("button", name=f"Show all ({round(len(pasted) / 1000)} kB)")
    expect(unfold).to_be_visible()
    puppet.answer("Read.")
    expect_status(chat, "Answer complete")
    expect(chat.locator("[aria-busy]")).to_have_count(0)
    assert chat.locator("#ledger").evaluate("ledger => ledger.scrollHeight") < 1500
    unfold.click()
    assert chat.locator("#ledger").evaluate("ledger => ledger.scrollHeight") > 2_500
    message.get_by_role("button", name="Show less").click()
    expect(unfold).to_have_attribute("aria-expanded", "false")
    assert serious_findings(chat) == []
    chat.reload()
    expect(unfold).to_be_visible()
    message.hover()
    message.get_by_role("button", name="Edit your message").click()
    expect(message.get_by_role("button", name="Send")).to_be_in_viewport(ratio=1)
    assert message.get_by_role("textbox").evaluate(
        "area => area.scrollTop + area.clientHeight >= area.scrollHeight - 20"
    )


def test_a_too_long_message_is_refused_before_sending_and_kept(chat: Page, puppet: PuppetModel) -> None:
    words = "word " * 420
    box = chat.get_by_label("Message to assistant")
    expect(box).to_have_attribute("data-longest", "200000")
    box.evaluate("box => { box.dataset.longest = 2000 }")  # a browser takes seconds to lay out more
    send(chat, words)
    expect(chat.get_by_text("at most 2,000 can be sent")).to_be_visible()
    expect(chat.get_by_text("This message has 2,099 characters")).to_be_visible()
    expect(chat.locator(".turn")).to_have_count(0)
    chat.reload()
    expect(box).to_have_value(words)
    box.fill("short")
    send(chat, "short")
    puppet.answer("Fine.")
    expect_status(chat, "Answer complete")
    assert [request.messages[-1]["content"] for request in puppet.requests][-1].endswith("short")
