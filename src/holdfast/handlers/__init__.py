"""Handlers: their registry, and what they receive."""
