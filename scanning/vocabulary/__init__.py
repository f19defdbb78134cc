"""Word classes: sets of words in many languages that mean the same for a rule.
Each module of this package holds one family; `words.py` reads them, `sentences.py` tags text with them.
A line is `language: word, word*, two words`; `*` stands for any ending; accents and case do not matter."""
