"""Flows as YAML documents."""
