"""The only package that speaks to the database."""
