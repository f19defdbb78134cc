"""Images, sounds and files that come with messages. Their bytes are files in Django's storage `attachments`; a message
only refers to them. `references.py` defines the form of a reference, only `files.py` calls the storage, and only
`uses.py` writes the rows that say which session uses a file and which file is to be deleted. `keeping.py` stores what a
request brings, `reading.py` puts the bytes back, and `sweep.py` deletes unused files."""
