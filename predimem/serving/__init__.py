"""The asynchronous inference server: PrediMem behind openpi's websocket protocol (docs/serving.md)."""
