"""The asynchronous inference server: PrediMem behind openpi's websocket protocol (docs/guides/serving.md)."""
