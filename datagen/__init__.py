"""Demonstrations: scripted experts with privileged state, keyframes by Eq. 1-3, episodes on disk."""
