"""Runs that people and programs queue, watch and cancel: the machine of document 002 so far."""
