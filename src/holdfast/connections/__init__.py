"""Everything that opens or lends a connection."""
