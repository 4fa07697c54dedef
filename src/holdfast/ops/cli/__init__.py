"""`holdfast ops`."""
