"""Joins scripts and styles into few files, by replacing the imports of modules and style sheets with their contents.

Browsers would request each imported file separately, one level after the other. The files in the folder `static` stay
small and import what they need; a collected file contains all of it, once and in order. Only the forms of import that
Daybook's files use are supported; any other is refused, so that nothing is joined wrongly."""

import posixpath
import re
from collections.abc import Callable, Iterator
from typing import Any

from django.contrib.staticfiles.finders import FileSystemFinder
from django.core.exceptions import ImproperlyConfigured
from django.core.files.base import ContentFile, File
from django.core.files.storage import FileSystemStorage

Read = Callable[[str], str]

_JS_IMPORT = re.compile(r'^import (?:\{ (?P<names>[\w, ]+) \} from )?"(?P<file>\.{1,2}/[\w/.-]+)";\n', re.MULTILINE)
_JS_EXPORT = re.compile(r"^export (?=(?:(?:async )?function\*?|class|const) (\w+))", re.MULTILINE)
_JS_OTHER = re.compile(r"^(?:import|export)\b.*|\bimport[.(]|^await\b", re.MULTILINE)
_CSS_IMPORT = re.compile(r'^@import "(?P<file>[\w/.-]+)";\n', re.MULTILINE)
_CSS_OTHER = re.compile(r"@import\b.*")


def joined_script(name: str, read: Read) -> str:
    """Return a module with all its imports, each once and as a function that returns its exports. The module keeps its
    own exports. `read` returns the text of a file by its name below `static`. Raises ImproperlyConfigured for an
    unsupported form of import or export."""
    source = read(name)
    if not _JS_IMPORT.search(source):
        return source
    parts = [_as_function(file, read(file)) for file in _in_order(name, read, _JS_IMPORT)]
    if names := _JS_EXPORT.findall(source):
        parts.append(f"export const {{ {', '.join(names)} }} = {_variable(name)};\n")
    return "".join(parts)


def joined_styles(name: str, read: Read) -> str:
    """Return a style sheet with its imports inlined, each once."""
    return "".join(_styles(file, name, read(file)) for file in _in_order(name, read, _CSS_IMPORT))


def _in_order(name: str, read: Read, pattern: re.Pattern[str]) -> Iterator[str]:
    """Yield the names of all files that this one needs and then its own, each after its imports."""
    done: set[str] = set()

    def visit(file: str, path: tuple[str, ...]) -> Iterator[str]:
        if file in path:
            raise ImproperlyConfigured(f"static/{file} imports itself, by {' and '.join(path)}.")
        if file in done:
            return
        for match in pattern.finditer(read(file)):
            yield from visit(_target(file, match["file"]), (*path, file))
        done.add(file)
        yield file

    yield from visit(name, ())


def _as_function(name: str, source: str) -> str:
    exports = _JS_EXPORT.findall(source)

    def assignment(match: re.Match[str]) -> str:
        target = _variable(_target(name, match["file"]))
        return f"const {{ {match['names']} }} = {target};\n" if match["names"] else ""

    body = _JS_EXPORT.sub("", _JS_IMPORT.sub(assignment, source))
    if other := _JS_OTHER.search(body):
        raise ImproperlyConfigured(f"static/{name} cannot be joined: {other[0]}")
    returned = f"return {{ {', '.join(exports)} }};\n" if exports else ""
    return f"// {name}\nconst {_variable(name)} = (() => {{\n{body}{returned}}})();\n"


def _styles(name: str, into: str, source: str) -> str:
    body = _CSS_IMPORT.sub("", source)
    if other := _CSS_OTHER.search(body):
        raise ImproperlyConfigured(f"static/{name} cannot be joined: {other[0]}")
    if "url(" in body and posixpath.dirname(name) != posixpath.dirname(into):
        raise ImproperlyConfigured(f"static/{name} refers to files, so only sheets in the same folder can import it.")
    return body


def _target(name: str, file: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), file))


def _variable(name: str) -> str:
    return "$" + re.sub(r"\W", "_", name)


_JOINED = {".js": joined_script, ".css": joined_styles}


class JoinedFiles(FileSystemStorage):
    """A folder of static files that joins scripts and styles when they are read."""

    def open(self, name: str, mode: str = "rb") -> "File[Any]":
        join = _JOINED.get(posixpath.splitext(name)[1])
        if join is None:
            return super().open(name, mode)
        return ContentFile(join(name.replace("\\", "/"), self._text).encode(), name=name)

    def _text(self, name: str) -> str:
        with super().open(name) as file:
            return str(file.read().decode())


class JoinedFinder(FileSystemFinder):
    """Finds the files of STATICFILES_DIRS and joins them."""

    def __init__(self, app_names: Any = None, *args: Any, **kwargs: Any) -> None:
        super().__init__(app_names, *args, **kwargs)
        for prefix, root in self.locations:
            self.storages[root] = JoinedFiles(location=root)
            self.storages[root].prefix = prefix  # as FileSystemFinder does
