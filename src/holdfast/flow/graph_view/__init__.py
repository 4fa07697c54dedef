"""Drawings of flows: rails in a terminal, SVG elsewhere."""
