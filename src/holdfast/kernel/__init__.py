"""The package that calls the database's functions."""
