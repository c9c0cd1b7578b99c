"""Task decomposition, as in RoboMemArena (arXiv:2605.10921), section 7: an instruction becomes steps for the skills."""
