"""Parts that only actors trained from scratch need: a small image encoder and training-only losses."""
