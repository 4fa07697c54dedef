"""The commands of feeds."""
