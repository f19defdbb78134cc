"""Images, sounds and files sent with messages. Their bytes are files in Django's storage `attachments`; a message only
refers to them. `references.py` defines the format of references, only `files.py` calls the storage, and only `uses.py`
writes the rows that record which session uses a file and which file is being deleted. `storing.py` stores a request's
attachments, `reading.py` puts the bytes back, and `sweep.py` deletes unused files."""
