"""Episodes in the formats of other tools, and back. Episodes are stored once; everything here is derived."""
