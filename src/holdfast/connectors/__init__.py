"""Outside systems: what speaks to them, and how their answers become outcomes."""
