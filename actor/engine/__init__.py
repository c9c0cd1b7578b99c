"""Faster ways to run the actor's model. The plain one is `actor.pi05`, against which they are tested."""
