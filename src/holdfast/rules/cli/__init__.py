"""The commands of `holdfast rules`."""
