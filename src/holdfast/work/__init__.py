"""Single tasks: what users write down, and what they hold of what they started."""
