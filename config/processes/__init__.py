"""The processes of an installation: preparing, starting, supervising and ending them, and the worker."""
