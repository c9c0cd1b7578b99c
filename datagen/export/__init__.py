"""Episodes in the formats of other tools. Episodes are stored once; everything here is derived."""
