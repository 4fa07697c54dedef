"""What a handler is, and what it receives."""
