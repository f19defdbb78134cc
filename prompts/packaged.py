"""`python -m prompts.packaged`: write the current texts of the prompt files to packaged.json."""

import json

from prompts.files import FOLDER, PACKAGED, PROMPTS


def texts_now() -> dict[str, str]:
    """Return the texts of the prompt files beside this module, by name."""
    return {name: (FOLDER / f"{name}.md").read_text(encoding="utf-8").strip("\n") for name in sorted(PROMPTS)}


if __name__ == "__main__":
    PACKAGED.write_text(json.dumps(texts_now(), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
