"""Flows: steps that wait for steps. What users write down, and what they hold of what they started."""
