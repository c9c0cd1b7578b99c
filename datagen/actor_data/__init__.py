"""Data for the actor: frames and short episodes in which every state is labelled by an expert without memory."""
