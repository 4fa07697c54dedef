"""Single tasks: their definition, and the handles of started ones."""
