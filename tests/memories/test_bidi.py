"""Names in sentences"""

import pytest

from memories.bidi import isolated


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("report 3.pdf", "report 3.pdf"),
        ("invoice\u202efdp.exe", "invoicefdp.exe"),
        ("\u2067\u2069a\u200f", "a"),
        ("דוח.pdf", "\u2068דוח.pdf\u2069"),
        ("تقرير\u2069\u202e.pdf", "\u2068تقرير.pdf\u2069"),
        ("Übersicht 報告.txt", "Übersicht 報告.txt"),
    ],
)
def test_the_direction_of_a_name_stays_in_it(name: str, shown: str) -> None:
    assert isolated(name) == shown
