"""Limits of what one request may contain. They are checked where input enters, before a database thread or a lock is
taken; the OpenAPI document and docs/limits.md name the same numbers. Limits that an administrator may change (the size
of a body, a message and a memory, the number of books) are settings instead."""

import re
from datetime import datetime
from typing import Annotated

from pydantic import BeforeValidator, Field, StringConstraints

KEYWORDS_GIVEN = 100  # keywords that one request may give for a memory; the first 12 distinct ones are kept
KEYWORD_LENGTH = 200  # characters of one given keyword; 40 are kept
BOOK_NAME = 64  # characters of a book's name
METADATA_KEYS = 16  # keys of a memory's metadata
METADATA_KEY = 64  # characters of a metadata key
METADATA_VALUE = 256  # characters of a metadata value
QUOTE_LENGTH = 1_000  # characters of the quote that a model gives as evidence for a memory; 300 are kept
QUERY_LENGTH = 10_000  # characters of a search query
SHORT_LENGTH = 255  # characters of a name, an id, a category or a filter
BULK_MEMORIES = 1_000  # memories that one request may change at once
MESSAGES = 10_000  # messages of one request to /v1
INGEST_MESSAGES = 500
"""Earlier messages that are stored, newest first, when a conversation from elsewhere continues here; also the messages
that one request may submit for review."""
INGEST_CHARACTERS = 2_000_000  # of the messages submitted in one request, which are stored in one transaction
TOOLS = 1_000  # tools that one turn may define, and tool results that one request may contain
TOOL_RESULT = 500_000  # characters of one client tool result in the native API
INPUTS = 2_048  # texts or lists of tokens of one request to /v1/embeddings or /v1/completions
VECTOR_BYTES = 64_000_000  # bytes of vectors in one response of a model server
PARTS = 1_000  # content parts of one message in the native API
WRITES = 1_000  # writes of a review in one request
JSON_DEPTH = 100  # nesting levels of lists and objects
JSON_VALUES = 200_000  # values in one JSON text, estimated by its commas and opening brackets
JSON_NUMBER = 100  # characters of one number in JSON
TOOL_ARGUMENTS = 500_000  # characters of the arguments of one tool call, as JSON
IMPORTS = 4  # large imports that run at once in a process, each of another owner
IMPORT_LINES = 50_000  # memories of an import
IMPORT_LINE_LENGTH = 200_000  # characters of one line of an import
IMPORT_ITEM_LENGTH = 20_000_000  # characters of one conversation or entry of an import in JSON
IMPORT_FILE_BYTES = 100_000_000  # bytes of one file of an import, unpacked
IMPORT_BYTES = 250_000_000  # bytes of all files of an import, unpacked
IMPORT_RATIO = 200  # largest ratio of a file's size to its compressed size
IMPORT_FILES = 1_000  # files of an archive that are read
IMPORT_DIRECTORY_BYTES = 4_000_000  # bytes of an archive's list of files
IMPORT_CONVERSATIONS = 20_000  # conversations of an import
IMPORT_MESSAGES = 500_000  # messages of an import's conversations in total
LISTED_MEMORIES = 1_000  # memories that the tool `get_memories` returns: the newest ones
LISTED_CHARACTERS = 200_000  # characters of those memories in total
MAX_NUMBER = 2**63 - 1  # the largest number of a notification, a message or a memory
SOCKETS = 100  # open websockets of one owner in a process; each polls the database every few seconds
WATCHERS = 100  # requests of one owner that watch running turns at once in a process
TRANSCRIPTS = 3  # pages with a conversation, or its pictures, that are built at once for one owner in a process
TRANSCRIPTS_WAITING = 100  # further ones that wait
LIST_LENGTH = 200  # entries of one page of a list

ShortText = Annotated[str, StringConstraints(max_length=SHORT_LENGTH)]
QueryText = Annotated[str, StringConstraints(max_length=QUERY_LENGTH)]
GivenKeywords = Annotated[
    list[Annotated[str, StringConstraints(max_length=KEYWORD_LENGTH)]], Field(max_length=KEYWORDS_GIVEN)
]
_LOST_PLUS = re.compile(r"(T\d\d:\d\d[\d:.]*) (\d\d:?\d\d)")  # an unescaped "+" in a query string means a space
QueryMoment = Annotated[
    datetime, BeforeValidator(lambda value: _LOST_PLUS.sub(r"\1+\2", value) if isinstance(value, str) else value)
]
PageSize = Annotated[int, Field(ge=1, le=LIST_LENGTH)]
AfterNumber = Annotated[int, Field(ge=0, le=MAX_NUMBER), BeforeValidator(lambda value: value or 0)]
