"""Scripts and style sheets joined with their imports."""

import pytest
from django.contrib.staticfiles import finders
from django.core.exceptions import ImproperlyConfigured

from config.serving.joined_files import joined_script, joined_styles

MODULES = {
    "a/page.js": 'import { say } from "./words.js";\nimport { one, two } from "../b/numbers.js";\n\nsay(one, two);\n',
    "a/words.js": 'import { one } from "../b/numbers.js";\n\nexport async function* say(...all) {\n  yield one;\n}\n',
    "b/numbers.js": "export const one = 1;\nexport const two = 2;\nconst three = 3;\n",
    "a/plain.js": "start();\n",
    "a/starts.js": 'import "./plain.js";\n\nexport class Chart {}\n',
    "a/round.js": 'import { other } from "./other.js";\n',
    "a/other.js": 'import { round } from "./round.js";\nexport const other = 1;\n',
    "a/all.js": 'import { one } from "../b/numbers.js";\nexport * from "./words.js";\n',
    "a/late.js": 'import { one } from "../b/numbers.js";\nconst words = await import("./words.js");\n',
}
SHEETS = {
    "a/page.css": '/* The page. */\n@import "base.css";\n@import "../b/font.css";\n\n.page { color: red; }\n',
    "a/base.css": "p { margin: 0; }\n",
    "b/font.css": '@import "../a/base.css";\n.font { --a: 1; }\n',
    "b/picture.css": 'body { background: url("dots.png"); }\n',
    "a/far.css": '@import "../b/picture.css";\n',
    "a/media.css": '@import url("base.css") print;\n',
}


def test_a_module_is_joined_with_its_imports_once_and_in_order() -> None:
    joined = joined_script("a/page.js", MODULES.__getitem__)
    positions = [joined.index(f"// {name}\n") for name in ("b/numbers.js", "a/words.js", "a/page.js")]
    assert positions == sorted(positions)
    assert joined.count("const three") == 1
    assert "return { one, two };" in joined
    assert "return { say };" in joined
    assert "const { one, two } = $b_numbers_js;" in joined
    assert "import" not in joined
    assert "export" not in joined, "nothing imports a page's script, so it exports nothing"


def test_the_modules_own_exports_stay_exported() -> None:
    joined = joined_script("a/starts.js", MODULES.__getitem__)
    assert joined.endswith("export const { Chart } = $a_starts_js;\n")
    assert joined.index("start();") < joined.index("class Chart")


def test_a_module_without_imports_is_unchanged() -> None:
    assert joined_script("b/numbers.js", MODULES.__getitem__) == MODULES["b/numbers.js"]


@pytest.mark.parametrize(
    ("name", "message"),
    [("a/round.js", "imports itself"), ("a/all.js", "export \\* from"), ("a/late.js", "import\\(")],
)
def test_modules_that_cannot_be_joined_are_refused(name: str, message: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=message):
        joined_script(name, MODULES.__getitem__)


def test_a_style_sheet_is_joined_with_its_imports_once_and_in_order() -> None:
    joined = joined_styles("a/page.css", SHEETS.__getitem__)
    assert joined == "p { margin: 0; }\n.font { --a: 1; }\n/* The page. */\n\n.page { color: red; }\n"


@pytest.mark.parametrize(("name", "message"), [("a/far.css", "sheets in the same folder"), ("a/media.css", "print")])
def test_style_sheets_that_cannot_be_joined_are_refused(name: str, message: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=message):
        joined_styles(name, SHEETS.__getitem__)


def test_no_static_file_imports_another_at_run_time() -> None:
    """Check all files; tests/browser runs only each page's script."""
    (joined_finder, *_) = finders.get_finders()
    for name, storage in joined_finder.list([]):
        if name.endswith((".js", ".css")):
            with storage.open(name) as file:
                assert not file.read().decode().startswith(("import", "@import")), name
