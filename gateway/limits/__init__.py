"""Limits of keys, and what keys and people have used: requests a minute, answers at once, tokens and money a UTC
day."""
