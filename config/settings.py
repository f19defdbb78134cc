"""Django settings. The only place that knows whether Daybook runs embedded or at scale."""

import os
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import dj_database_url

from config.admin_site import UNFOLD  # noqa: F401 - the theme reads it here
from config.cors import CORS_ANSWER_HEADERS, CORS_REQUEST_HEADERS
from config.environment import (
    ConfigurationError,
    allowed_hosts,
    load_environment,
    owner_only,
    secret_key,
    split_list,
    upstreams,
)
from config.logs import logging_config
from config.permissions import make_private

make_private()
BASE_DIR = Path(__file__).resolve().parent.parent
ENV = load_environment()

DAYBOOK_HOME = (ENV.home if ENV.home.is_absolute() else BASE_DIR / ENV.home).resolve()
try:
    DAYBOOK_HOME.mkdir(parents=True, exist_ok=True, mode=0o700)
except OSError as error:
    raise ConfigurationError(
        f"DAYBOOK_HOME is '{DAYBOOK_HOME}'; it must be a folder that can be written ({error.strerror})."
    ) from None

SECRET_KEY = secret_key(ENV, DAYBOOK_HOME)
# Whether it comes from the environment; else it is kept in the home, and a backup holds it.
SECRET_KEY_GIVEN = bool(ENV.secret_key.get_secret_value())
SECRET_KEY_FALLBACKS = split_list(ENV.secret_key_fallbacks)
DEBUG = False
ALLOWED_HOSTS = allowed_hosts(ENV)
TRUSTED_ORIGINS = split_list(ENV.trusted_origins)
CSRF_TRUSTED_ORIGINS = TRUSTED_ORIGINS
# Pages of trusted origins may use the APIs with a key of their own; cookies of this host are never theirs to use.
CORS_ALLOWED_ORIGINS = TRUSTED_ORIGINS
CORS_URLS_REGEX = r"^/(api|v1|mcp)(/|$)"
CORS_ALLOW_HEADERS = CORS_REQUEST_HEADERS
CORS_EXPOSE_HEADERS = CORS_ANSWER_HEADERS

INSTALLED_APPS = [
    "unfold",
    "unfold.contrib.filters",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "servestatic.runserver_nostatic",
    "django.contrib.staticfiles",
    "channels",
    "ninja",
    "django_q",
    "django_htmx",
    "axes",
    "corsheaders",
    "memories",
    "gateway",
    "reviews",
    "config",
]

# Django's own middlewares cost a thread hop each under ASGI: config.middleware lets API requests pass by them.
MIDDLEWARE = [
    "config.middleware.RequestBoundary",
    "corsheaders.middleware.CorsMiddleware",
    "config.middleware.PageSecurity",
    "config.middleware.PageStatic",
    "config.middleware.PageSessions",
    "config.middleware.PageCommon",
    "config.middleware.PageCsrf",
    "config.middleware.PageAuthentication",
    "config.middleware.PageMessages",
]

ROOT_URLCONF = "config.urls"
ASGI_APPLICATION = "config.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "gateway.chat.pages.page",
            ]
        },
    }
]

DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
REDIS_URL = ENV.redis_url.get_secret_value()


_PAGE_CONNECTIONS = 2  # what is left of the pool, at least, when every database thread holds its own


def _database() -> dict[str, Any]:
    if ENV.database_url:
        try:
            config: dict[str, Any] = dict(
                dj_database_url.parse(ENV.database_url, conn_max_age=0, conn_health_checks=True)
            )
        except (ValueError, KeyError):
            config = {}
        if config.get("ENGINE") != "django.db.backends.postgresql":
            raise ConfigurationError(
                "DATABASE_URL is a value that is not shown; allowed is postgres://user:password@host:port/name."
            )
        threads = ENV.db_threads + ENV.db_read_threads
        if ENV.db_pool < threads + _PAGE_CONNECTIONS:
            raise ConfigurationError(
                f"DAYBOOK_DB_POOL is {ENV.db_pool}; allowed is {threads + _PAGE_CONNECTIONS} or more: one for each of "
                f"{threads} database threads and {_PAGE_CONNECTIONS} for pages."
            )
        # Pages take a connection for their request and give it back, database threads keep theirs: this process
        # never has more than these, and a request that finds none free within the busy time is answered as overloaded.
        config.setdefault("OPTIONS", {})["pool"] = {
            "min_size": 0,
            "max_size": ENV.db_pool,
            "timeout": ENV.db_busy_seconds,
            "max_idle": 60,
            "num_workers": 2,
        }
        return config
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": owner_only(DAYBOOK_HOME / "daybook.sqlite3"),
        "CONN_MAX_AGE": None,
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "timeout": ENV.db_busy_seconds,
            # What is deleted is overwritten: forgetting must not rest on how SQLite was compiled.
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA secure_delete=ON; "
            f"PRAGMA synchronous={ENV.sqlite_synchronous};",
        },
        # A file: an in-memory database isn't reliably shared between the threads of a live server.
        "TEST": {"NAME": DAYBOOK_HOME / "test.sqlite3"},
    }


DATABASES = {"default": _database()}

Q_CLUSTER: dict[str, Any] = {
    "name": "daybook",
    "workers": ENV.workers,
    "queue_limit": ENV.workers,
    # Backstops only: a review has its own deadline, and attempts are counted in its claim.
    "timeout": 3600,
    "retry": 7200,
    "max_attempts": 1,
    "ack_failures": True,
    "catch_up": False,
    "save_limit": 250,
    "poll": 0.1,
    "label": "Queue",
}
if REDIS_URL:
    Q_CLUSTER["broker_class"] = "memories.redis_clients.QueueBroker"
    CHANNEL_LAYERS: dict[str, Any] = {
        "default": {
            "BACKEND": "memories.redis_clients.HintLayer",
            # The layer waits 5 s for a message: the limit of reading is above that, or it would break idle sockets.
            "CONFIG": {"hosts": [{"address": REDIS_URL, "socket_timeout": 8, "socket_connect_timeout": 1}]},
        }
    }
else:
    Q_CLUSTER["orm"] = "default"
    CHANNEL_LAYERS = {
        "default": {
            "BACKEND": "memories.datagrams.DatagramChannelLayer",
            "CONFIG": {"folder": DAYBOOK_HOME / "sockets"},
        }
    }

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
PASSWORD_HASHERS = ["gateway.passwords.BoundedPasswordHasher"]
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",  # refuses after too many failures, before a password is looked at
    "django.contrib.auth.backends.ModelBackend",
]
AXES_HANDLER = "gateway.sign_in.AttemptsHandler"
AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = timedelta(minutes=15)
# The order is that of AttemptsHandler.get_failures.
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"], "ip_address", "username"]
AXES_RESET_ON_SUCCESS = True
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_USERNAME_CALLABLE = "gateway.sign_in.account_name"
AXES_CLIENT_IP_CALLABLE = "gateway.requests.client_address"
AXES_DISABLE_ACCESS_LOG = True  # the audit log records sign-ins
AXES_ENABLE_ADMIN = False
AXES_VERBOSE = False
LOGIN_URL = "/login/"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/login/"
SESSION_COOKIE_NAME = "daybook_session"
CSRF_COOKIE_NAME = "daybook_csrf"
SESSION_COOKIE_SAMESITE = "Lax"
# Cookies are marked secure when every origin that people use is https.
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = bool(TRUSTED_ORIGINS) and all(
    urlsplit(origin).scheme == "https" for origin in TRUSTED_ORIGINS
)
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if SESSION_COOKIE_SECURE else None
# Browsers that were here over https never come over http again; a year is what Django's own check asks for.
SECURE_HSTS_SECONDS = 31_536_000 if SESSION_COOKIE_SECURE else 0
SECURE_REFERRER_POLICY = "same-origin"

SILENCED_SYSTEM_CHECKS = [
    # Django looks for three middlewares by name; ours are subclasses, which config.checks looks at.
    "security.W001",
    "security.W002",
    "security.W003",
    # The middleware of django-axes only answers a refused sign-in; gateway.sign_in does, with the sign-in page.
    "axes.W002",
]

DAYBOOK_TRUSTED_PROXIES = ENV.trusted_proxies
DAYBOOK_MAX_BODY = ENV.max_body
BODY_SECONDS = ENV.body_seconds
BODY_SILENCE_SECONDS = ENV.body_silence_seconds
BODY_BUDGET = max(ENV.body_budget, ENV.max_body)
DAYBOOK_MAX_MESSAGE = ENV.max_message
DATA_UPLOAD_MAX_MEMORY_SIZE = ENV.max_body

LANGUAGE_CODE = "en"
USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"

# numpy is used on small arrays: more threads of its linear algebra only take the cores from other turns.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Where the scanner keeps its compiled rules: with everything else of ours, not in the user's cache folder.
os.environ.setdefault("KF_RULE_CACHE_DIR", str(DAYBOOK_HOME / "cache"))

STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
SERVESTATIC_USE_FINDERS = True
SERVESTATIC_ALLOW_ALL_ORIGINS = False

LOGGING = logging_config(ENV.log)
LOGGING_CONFIG = "logging.config.dictConfig"

# ---- Daybook -------------------------------------------------------------------------------------------------------
DAYBOOK_SERVER = ENV.server
DAYBOOK_HOST = ENV.host
DAYBOOK_PORT = ENV.port
DAYBOOK_MODEL = ENV.model
DAYBOOK_AGENTS = ENV.agents
DAYBOOK_PROMPTS = ENV.prompts or DAYBOOK_HOME / "prompts"
if ENV.prompts and not ENV.prompts.is_dir():
    raise ConfigurationError(f"DAYBOOK_PROMPTS is '{ENV.prompts}'; it must be a folder.")
DAYBOOK_PACKAGED_AGENTS = BASE_DIR / "agents.yaml"
DAYBOOK_ADMIN_USER = ENV.admin_user
DAYBOOK_ADMIN_PASSWORD = ENV.admin_password.get_secret_value()
DAYBOOK_API_KEY = ENV.api_key.get_secret_value()
DAYBOOK_UPSTREAMS = upstreams(ENV)
# Model calls are refused unless they go to a configured upstream or the demo model; tests allow loopback only.
DAYBOOK_UPSTREAM_LOOPBACK_ONLY = False
DB_THREADS = ENV.db_threads
DB_READ_THREADS = ENV.db_read_threads
DB_BUSY_SECONDS = ENV.db_busy_seconds
SWEEP_SECONDS = ENV.sweep_seconds
RUN_SECONDS = ENV.run_seconds
RUN_STEPS = ENV.run_steps
ANSWER_BYTES = ENV.answer_bytes
UPSTREAM_CONNECT_SECONDS = ENV.upstream_connect_seconds
UPSTREAM_IDLE_SECONDS = ENV.upstream_idle_seconds
UPSTREAM_FIRST_BYTE_SECONDS = ENV.upstream_first_byte_seconds
DETACH_SECONDS = ENV.detach_seconds
SNAPSHOT_BYTES = ENV.snapshot_bytes
SNAPSHOT_SESSIONS = ENV.snapshot_sessions
SNAPSHOT_IDLE_SECONDS = ENV.snapshot_idle_seconds
# How often a process that holds caches looks for what was forgotten in others; 0: never (tests).
INVALIDATION_SECONDS = 0.5
UPSTREAM_READ_SECONDS = 30.0
NOTIFICATION_DAYS = ENV.notification_days
UNDO_DAYS = ENV.undo_days
REVOKED_KEY_DAYS = ENV.revoked_key_days
MAX_ENTRY = ENV.max_entry
BOOKS_PER_OWNER = ENV.books_per_owner
METRICS = ENV.metrics
# Deadlines of recall, in seconds.
RECALL_LANE_SECONDS = ENV.recall_lane_seconds
KEYWORDS_SECONDS = ENV.keywords_seconds
PUSH_POLL_SECONDS = ENV.push_poll_seconds
REVIEW_TOKENS = ENV.review_tokens
REVIEW_STEPS = ENV.review_steps
REVIEW_ATTEMPTS = ENV.review_attempts
REVIEWS_PER_DAY = ENV.reviews_per_day
REVIEW_TOKENS_PER_DAY = ENV.review_tokens_per_day
APPROVAL_DAYS = ENV.approval_days
COMPACTION_SECONDS = ENV.compaction_seconds
MEMORY_PROVIDERS = split_list(ENV.memory_providers)
PROVIDER_SECONDS = ENV.provider_seconds
EMBEDDING_MODEL = ENV.embedding_model
EMBEDDING_UPSTREAM = ENV.embedding_upstream
EMBEDDING_SECONDS = ENV.embedding_seconds
