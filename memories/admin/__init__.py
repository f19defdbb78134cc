"""The admin's pages of the memories app, and what the pages of the other apps are built from. Django finds the pages by
importing this package; each module registers its own."""

from memories.admin import access, audit, change_pages, memory_pages, records, users
