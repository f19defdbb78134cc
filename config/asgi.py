"""The ASGI application that daphne, uvicorn and tests serve."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup(set_prefix=False)

from channels.routing import ProtocolTypeRouter

from config.serving.asgi_handler import HttpApplication
from gateway.routing import websocket_application

application = ProtocolTypeRouter({"http": HttpApplication(), "websocket": websocket_application})
