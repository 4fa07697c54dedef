"""The commands of `holdfast ops`."""
