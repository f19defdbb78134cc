"""Static files as the product serves them, but looked up once in a process: every test client builds its middlewares
anew, and reading the names of all static files again costs more than a page."""

from typing import Any

from config.middleware import PageStatic


class StaticFilesReadOnce(PageStatic):
    """The product's middleware; its instances share the files that the first one found."""

    _found: tuple[dict[str, Any], list[tuple[str, str]]] | None = None

    def add_files_from_manifest(self) -> None:
        if StaticFilesReadOnce._found is None:
            super().add_files_from_manifest()
            StaticFilesReadOnce._found = self.files, self.directories
        self.files, self.directories = StaticFilesReadOnce._found
