"""Workflows: steps that wait for steps."""
