"""The web server: sockets, protocols and their limits, middleware, static files."""
