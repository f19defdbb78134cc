"""The ASGI application: what daphne, uvicorn and tests serve."""

import os
import threading

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup(set_prefix=False)

from channels.routing import ProtocolTypeRouter

from config.asgi_handler import HttpApplication
from config.warm import warm_up
from gateway.routing import websocket_application

# The scanner's rules and the search's embeddings load while the server starts, not in somebody's first turn.
threading.Thread(target=warm_up, name="daybook-warm-up", daemon=True).start()
application = ProtocolTypeRouter({"http": HttpApplication(), "websocket": websocket_application})
