"""The web server: sockets, protocols and their limits, middlewares, static files."""
