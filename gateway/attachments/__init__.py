"""Images, sounds and files that come with messages. Their bytes are files of Django's storage `attachments`, to which a
message only refers: `references.py` knows how a reference looks, `files.py` alone talks to the storage, and `uses.py`
alone writes the rows that say which session uses a file and which file is to be deleted. `keeping.py` stores what a
request brings, `reading.py` puts it back, `sweep.py` deletes what nobody uses."""
