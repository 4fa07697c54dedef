"""The commands of `holdfast flow`."""
