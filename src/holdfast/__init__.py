"""Holdfast: work that must not be lost, must not be done twice, and must be explainable afterwards."""
