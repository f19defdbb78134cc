"""Django's backend for PostgreSQL, except that ended connections are replaced before they are used."""
