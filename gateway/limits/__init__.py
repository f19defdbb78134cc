"""Limits of keys, and the usage of keys and people: requests per minute, concurrent answers, tokens and money per UTC
day."""
