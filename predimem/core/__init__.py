"""Types, interfaces, configs and files that everything else is built on. Never imports torch."""
