"""The processes of an installation: what prepares, starts, supervises and ends them, and the worker."""
