"""Clients of outside systems, whose answers become outcomes."""
