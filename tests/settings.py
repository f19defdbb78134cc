"""Settings for the tests: the product's own, with a temporary home and without the caller's upstream and secrets."""

import os
import tempfile
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

_REMOVED_PREFIXES = ("OPENAI_", "DAYBOOK_")
_KEPT_VARIABLES = {"DAYBOOK_SECRET_KEY"}
for _name in [name for name in os.environ if name.startswith(_REMOVED_PREFIXES) and name not in _KEPT_VARIABLES]:
    del os.environ[_name]
os.environ["DAYBOOK_HOME"] = tempfile.mkdtemp(prefix="daybook-test-")
# Compiling the scanner's rules takes seconds. All test processes, and all that they start, share one compiled copy,
# named after a hash of the rules.
_RULES = Path(__file__).resolve().parents[1] / ".pytest_cache" / "scanner-rules"
os.environ.setdefault("KF_RULE_CACHE_DIR", str(_RULES))

# They share the prepared static files, too.
os.environ["DAYBOOK_STATIC"] = str(_RULES.with_name("static"))

# Each test process has its own Redis database, so that the processes it starts take only its jobs.
_WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
if os.environ.get("REDIS_URL"):
    os.environ["REDIS_URL"] = urlunsplit(urlsplit(os.environ["REDIS_URL"])._replace(path=f"/{15 - _WORKER % 4}"))

from config.settings import *  # noqa: E402, F403

# Database functions run inline, since other threads would not see the test's transaction.
DB_THREADS = 0
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
SWEEP_SECONDS = 0.2
# A thread that polls the database would outlive the test.
INVALIDATION_SECONDS = 0
SESSION_WATCH_SECONDS = 0.1
# Learned changes of upstreams are read only where a test says so.
UPSTREAM_READ_SECONDS = 0
ALLOWED_HOSTS = ["testserver", "127.0.0.1", "localhost"]
_TEST_MIDDLEWARE = {
    "config.serving.middleware.PageStatic": "tests.page_middlewares.static_files",
    "config.serving.middleware.PageCsrf": "tests.page_middlewares.csrf",
}
MIDDLEWARE = [_TEST_MIDDLEWARE.get(name, name) for name in MIDDLEWARE]  # noqa: F405
