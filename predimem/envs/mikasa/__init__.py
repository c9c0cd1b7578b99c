"""MIKASA-Robo: its environments, a scripted expert, and its own evaluation harness."""
