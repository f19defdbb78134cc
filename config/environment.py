"""The typed environment: Daybook's variables, their defaults and allowed values. Only config.settings reads it, once;
nothing but this module and config.upstreams uses os.environ."""

import os
import re
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, ValidationError, ValidationInfo, field_validator
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails
from pydantic_settings import SettingsConfigDict

from config.account_environment import AccountEnvironment
from gateway.upstream_options import UPSTREAM_NAME
from gateway.web_addresses import is_web_address, url_parts

UPSTREAM = re.compile(rf"^DAYBOOK_UPSTREAM_({UPSTREAM_NAME})_(URL|KEY|DIALECT|OPTIONS|AT_ONCE)$", re.IGNORECASE)
"""Variables of named upstreams, which config.upstreams reads. Like the others, they may be in lower case."""
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_MAX_BYTES = 1_000_000_000_000
_DAY = 86_400  # seconds
Seconds = Annotated[float, Field(gt=0, le=_DAY)]
Size = Annotated[int, Field(le=_MAX_BYTES)]  # in bytes, characters or tokens
Count = Annotated[int, Field(le=1_000_000_000)]
# Fields whose values may have line breaks: JSON, and signing keys, which must not change.
_MULTILINE = {"attachments", "openai_options", "secret_key", "secret_key_fallbacks"}
# Existing installations may have keys in quotation marks. A password is checked when an account is created with it.
_KEPT_AS_GIVEN = _MULTILINE | {"admin_password"}
_APP_ORIGIN = re.compile(r"(?!https?:)[a-z][a-z0-9+.-]*://[a-zA-Z0-9._-]+")
_HOST = re.compile(r"[^\s/:@\[\]]+|\[[0-9A-Fa-f:.]+\]")


class ConfigurationError(Exception):
    """A variable has an invalid value. The message is one line: its name, its value, and what is allowed."""


class Environment(AccountEnvironment):
    """Variables are named DAYBOOK_<FIELD>, except those that carry an alias."""

    # An empty variable counts as unset, since .env files list unused variables, too.
    model_config = SettingsConfigDict(
        env_prefix="DAYBOOK_", env_ignore_empty=True, extra="ignore", populate_by_name=True
    )

    home: Path = Field(Path("var"), description="Folder for all data of Daybook.")
    host: str = Field("127.0.0.1", min_length=1, description="Address that the web server binds to.")
    port: int = Field(8000, ge=0, le=65535, description="Port that the web server binds to; 0: a free one.")
    server: Literal["daphne", "uvicorn"] = Field("uvicorn", description="ASGI server.")
    database_url: str = Field("", alias="DATABASE_URL", description="PostgreSQL URL; empty: SQLite in the home.")
    redis_url: SecretStr = Field(SecretStr(""), alias="REDIS_URL", description="Redis for queue and push.")
    openai_base_url: str = Field("", alias="OPENAI_BASE_URL", description="Address of the default upstream.")
    openai_api_key: SecretStr = Field(SecretStr(""), alias="OPENAI_API_KEY", description="Key of the default upstream.")
    openai_dialect: str = Field(
        "", alias="OPENAI_DIALECT", description="Dialect of the default upstream; empty: by its address."
    )
    openai_options: str = Field(
        "", alias="OPENAI_OPTIONS", description="Changes to that dialect, a JSON object; see docs/upstreams.md."
    )
    openai_at_once: str = Field(
        "", alias="OPENAI_AT_ONCE", description="Concurrent requests to the default upstream; empty: no limit."
    )
    model: str = Field("gpt-4o-mini", min_length=1, description="Upstream model of agents that do not name one.")
    agents: Path | None = Field(None, description="Agents file that `up` applies if its content has changed.")
    prompts: Path | None = Field(None, description="Folder of your own prompt files; empty: prompts in the home.")
    static: Path | None = Field(None, description="Folder of the prepared static files; empty: a cache in the home.")
    secret_key: SecretStr = Field(SecretStr(""), description="Signs cookies; empty: generated and stored in the home.")
    secret_key_fallbacks: str = Field("", description="Older secret keys, separated by commas.")
    admin_user: str = Field("admin", min_length=1, max_length=150, description="Name of the first administrator.")
    admin_password: SecretStr = Field(SecretStr(""), description="Password of the first administrator.")
    api_key: SecretStr = Field(SecretStr(""), description="First API key of the first administrator.")
    allowed_hosts: str = Field("", description="Host names, separated by commas.")
    trusted_origins: str = Field("", description="Origins (https://host, or an app's), separated by commas.")
    max_body: Size = Field(20_000_000, ge=1_000, description="Largest request body in bytes.")
    body_seconds: float = Field(30, ge=1, le=3600, description="Time limit of a body, plus a second for each 50 kB.")
    body_silence_seconds: float = Field(10, ge=0.1, le=600, description="Longest pause of a client within a body.")
    body_budget: Size = Field(256_000_000, ge=1_000_000, description="Bytes of large bodies in memory, per process.")
    max_message: Size = Field(200_000, ge=1, description="Largest user message in characters.")
    log: Literal["console", "json"] = Field("console", description="Format of the log.")
    attachments: SecretStr = Field(
        SecretStr(""), description="Django storage of attachments, a JSON object; empty: a folder in the home."
    )
    workers: int = Field(2, ge=1, le=64, description="Worker processes of the queue.")
    db_threads: int = Field(1, ge=0, le=64, description="Database threads that write; 0 runs inline.")
    db_read_threads: int = Field(3, ge=1, le=64, description="Database threads that only read.")
    db_busy_seconds: float = Field(5, ge=0.1, le=60, description="How long a request waits for the database.")
    db_pool: int = Field(20, ge=4, le=1000, description="Maximum connections of one process to PostgreSQL.")
    sweep_seconds: float = Field(5.0, ge=0.05, le=3600, description="Pause between sweeps in the worker.")
    sqlite_synchronous: Literal["NORMAL", "FULL"] = Field("NORMAL", description="FULL also survives power cuts.")
    run_seconds: float = Field(600, ge=1, le=86400, description="Time limit of a run.")
    run_steps: int = Field(8, ge=1, le=100, description="Maximum model steps of a run.")
    answer_bytes: Size = Field(1_000_000, ge=1_000, description="Maximum size of a run's answer in bytes.")
    upstream_connect_seconds: Seconds = Field(10, description="Timeout for connecting to an upstream.")
    upstream_first_byte_seconds: float = Field(
        0, ge=0, le=_DAY, description="Timeout until an upstream begins its answer; 0 = the request's own deadline."
    )
    upstream_idle_seconds: Seconds = Field(120, description="Longest pause of an upstream once its answer has begun.")
    detach_seconds: float = Field(60, ge=0, le=_DAY, description="How long an answer continues with nobody watching.")
    snapshot_bytes: Size = Field(256_000_000, ge=1_000_000, description="Memory for book views in one process.")
    snapshot_sessions: Count = Field(10_000, ge=1, description="Session snapshots cached in one process.")
    snapshot_idle_seconds: float = Field(
        3600, ge=1, le=365 * _DAY, description="Idle time after which a snapshot is dropped."
    )
    recall_lane_seconds: Seconds = Field(0.5, description="Deadline of each lane of recall.")
    keywords_seconds: Seconds = Field(3, description="Deadline of the request that finds keywords.")
    push_poll_seconds: Seconds = Field(5, description="How often a websocket polls for lost notifications.")
    compaction_seconds: Seconds = Field(30, description="Deadline of the request that summarises older turns.")
    embedding_model: str = Field(
        "", description="Upstream embedding model for search and for agents in /v1/embeddings; empty: none."
    )
    embedding_upstream: str = Field(
        "", description="Upstream of the embedding model; empty: the default one, for its own agents only."
    )
    embedding_path: Path | None = Field(
        None, description="Folder of an ONNX embedding model that runs in Daybook itself; empty: none."
    )
    embedding_seconds: Seconds = Field(1, description="Deadline of a turn's query vector.")
    memory_providers: str = Field("", description="Additional memory providers, dotted paths separated by commas.")
    provider_seconds: Seconds = Field(5, description="Timeout of an additional provider for recording a run.")
    review_tokens: Count = Field(24_000, ge=500, description="Maximum tokens of conversation that a review reads.")
    review_steps: int = Field(8, ge=1, le=100, description="Maximum model steps of a review.")
    review_attempts: int = Field(3, ge=1, le=20, description="Attempts of a review after transient upstream errors.")
    reviews_per_day: Count = Field(500, ge=0, description="Maximum reviews per owner and day; 0 = no limit.")
    review_tokens_per_day: Size = Field(
        5_000_000, ge=0, description="Maximum tokens for reviews per owner and day; 0 = no limit."
    )
    approval_days: int = Field(14, ge=1, le=3650, description="Days that writes of a review wait for approval.")
    webhooks_private: bool = Field(False, description="Webhooks and alerts may use private addresses.")
    notification_days: int = Field(14, ge=1, le=3650, description="Days that notifications are kept.")
    undo_days: int = Field(30, ge=1, le=3650, description="Days that deleted memories can be restored.")
    session_days: int = Field(
        0, ge=0, le=36500, description="Days without activity after which a session is deleted; 0 = never."
    )
    run_detail_days: int = Field(
        0, ge=0, le=36500, description="Days that a run's reasoning and given memories are kept; 0 = as long as it."
    )
    revision_days: int = Field(
        0, ge=0, le=36500, description="Days that earlier versions of memories and documents are kept; 0 = forever."
    )
    max_entry: int = Field(4_000, ge=100, le=32_000, description="Largest memory in characters.")
    books_per_owner: int = Field(100, ge=1, le=10_000, description="Maximum books per owner, besides those of agents.")
    revoked_key_days: int = Field(90, ge=1, le=36500, description="Days that revoked API keys stay listed.")
    trusted_proxies: int = Field(
        0, ge=0, le=10, description="Proxies in front that set X-Forwarded-For; 0: the header is ignored."
    )
    metrics: bool = Field(False, description="Serve /metrics.")

    @field_validator("*", mode="before")
    @classmethod
    def _text(cls, value: object, info: ValidationInfo) -> object:
        if isinstance(value, str) and value:
            if not value.strip():
                raise ValueError("it is blank: leave the variable out, or give it a value")
            if not ("".join(value.split()) if info.field_name in _MULTILINE else value).isprintable():
                raise ValueError("allowed are characters that can be shown, without line breaks")
            if info.field_name not in _KEPT_AS_GIVEN:
                refuse_quoted(value)
            if info.field_name not in _KEPT_AS_GIVEN | {"openai_base_url"} and not _is_secret(info.field_name):
                return value.strip()
        return value

    @field_validator("home", "agents", "prompts", "static", "embedding_path")
    @classmethod
    def _path(cls, value: Path | None) -> Path | None:
        return value and expanded(value)

    @field_validator("session_days", "revision_days")
    @classmethod
    def _not_sooner(cls, value: int, info: ValidationInfo) -> int:
        """Refuse to delete what a person can still decide about or undo."""
        other = {"session_days": "approval_days", "revision_days": "undo_days"}[str(info.field_name)]
        if 0 < value < info.data.get(other, 0):
            raise ValueError(f"allowed are 0 and at least the {info.data[other]} days of DAYBOOK_{other.upper()}")
        return value

    @field_validator("openai_base_url")
    @classmethod
    def _http_address(cls, value: str) -> str:
        return checked_url(value)

    @field_validator("openai_api_key", "api_key")
    @classmethod
    def _header(cls, value: SecretStr) -> SecretStr:
        checked_key(value.get_secret_value())
        return value

    @field_validator("redis_url")
    @classmethod
    def _redis(cls, value: SecretStr) -> SecretStr:
        parts = url_parts(value.get_secret_value())
        server = parts and parts.scheme in {"redis", "rediss"} and re.fullmatch(r"(/\d*)?", parts.path)
        if value and not server and not (parts and parts.scheme == "unix" and parts.path):
            raise ValueError("allowed are redis://:password@host:port/number, rediss://… and unix:///path")
        return value

    @field_validator("allowed_hosts")
    @classmethod
    def _hosts(cls, value: str) -> str:
        if not all(_HOST.fullmatch(host) for host in split_list(value)):
            raise ValueError("allowed are names such as chat.example.org and [::1], without a scheme or a port")
        return value

    @field_validator("trusted_origins")
    @classmethod
    def _origins(cls, value: str) -> str:
        for origin in split_list(value):
            if not _APP_ORIGIN.fullmatch(origin) and (not is_web_address(origin) or urlsplit(origin).path):
                raise ValueError(
                    "allowed are origins such as https://chat.example.org or app://obsidian.md, without a path, "
                    "separated by commas"
                )
        return value.lower()  # as browsers send them


def _is_secret(field: str | None) -> bool:
    return Environment.model_fields[str(field)].annotation is SecretStr


def refuse_quoted(value: str) -> None:
    """Raise ValueError for a value in quotation marks. Shells and Docker Compose remove them, `docker --env-file` does
    not."""
    if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
        raise ValueError("it is in quotation marks, which are a part of it: leave them out")


def checked_url(value: str) -> str:
    if value and not is_web_address(value):
        raise ValueError("allowed are http:// and https:// addresses, without white space and without ? and #")
    return value.rstrip("/")


def checked_key(value: str) -> str:
    if not (value.isascii() and value.isprintable()):
        raise ValueError("allowed is what a header can carry: ASCII, without line breaks")
    return value


def expanded(path: Path) -> Path:
    """Return the path with a home folder in place of its ~, which shells leave in quotation marks and nothing else
    replaces in an env file. Raises ValueError if there is no such folder."""
    try:
        return path.expanduser()
    except RuntimeError:
        raise ValueError("the home folder that its ~ means is unknown: write the whole path") from None


def split_list(value: str) -> list[str]:
    """Return the values of a comma-separated list, without blanks."""
    return [item.strip() for item in value.split(",") if item.strip()]


def load_environment() -> Environment:
    """Read and check the environment. Raises ConfigurationError with one line for the first invalid value."""
    try:
        return Environment()
    except ValidationError as error:
        first = error.errors()[0]
        field = str(first["loc"][0])
        info = Environment.model_fields.get(field)
        name = (info.alias if info and info.alias else None) or (
            field if field.isupper() else f"DAYBOOK_{field.upper()}"
        )
        # Values of other variables may be or contain a secret (DATABASE_URL).
        is_number = info is not None and info.annotation in {int, float}
        is_secret = not is_number and re.search("KEY|PASSWORD|URL|SECRET", name)
        may_show = isinstance(first["input"], str) and not is_secret
        given = repr(first["input"]) if may_show else "a value that is not shown"
        raise ConfigurationError(f"{name} is {given}; {_allowed(first, info)}.") from None


def _allowed(error: ErrorDetails, info: FieldInfo | None) -> str:
    """Return what is allowed in words: those of a validator of ours, or what the field's type and limits say."""
    limits: dict[str, Any] = {}
    for limit in info.metadata if info else ():
        limits |= asdict(limit)
    if error["type"] == "literal_error":
        return f"allowed are {error['ctx']['expected']}"
    if error["type"] == "string_too_long":
        return f"allowed are at most {limits['max_length']} characters"
    if error["type"] != "value_error" and info and info.annotation is bool:
        return "allowed are true and false"
    if error["type"] != "value_error" and info and info.annotation in {int, float}:
        lowest = f"from {limits['ge']:,} to" if "ge" in limits else f"above {limits['gt']:,}, up to"
        return f"allowed are {'whole ' if info.annotation is int else ''}numbers {lowest} {limits['le']:,}"
    words = error["msg"].removeprefix("Value error, ")
    return f"{words[0].lower()}{words[1:]}"


def unknown_variables() -> list[str]:
    """Return the variables that begin with DAYBOOK_ but do not exist, such as mistyped names, which are ignored."""
    known = {f"DAYBOOK_{field.upper()}" for field in Environment.model_fields}
    ours = [name for name in os.environ if name.upper().startswith("DAYBOOK_")]
    return sorted(name for name in ours if name.upper() not in known and not UPSTREAM.match(name))


def allowed_hosts(configured: str, host: str) -> list[str]:
    """Return the hosts of a comma-separated list (DAYBOOK_ALLOWED_HOSTS) or, if empty, loopback and the bound host."""
    bound = [] if host in {"0.0.0.0", "::"} else [f"[{host}]" if ":" in host else host]  # noqa: S104 - compared, not bound
    return split_list(configured) or [*_LOOPBACK, *bound]


def is_readable_folder(path: Path) -> bool:
    """Return True if this user can list a folder and read in it; Path.is_dir raises if a folder above is closed."""
    return os.access(path, os.R_OK | os.X_OK) and path.is_dir()
