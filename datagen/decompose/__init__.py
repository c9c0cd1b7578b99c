"""Task decomposition: an instruction and a picture of the scene become ordered steps for the skills (002 section 7)."""
