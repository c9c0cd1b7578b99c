"""`predimem`, the command line."""

from __future__ import annotations

from predimem.cli.faults import explain
from predimem.cli.interrupts import keep_interrupts
from predimem.core.faults import SetupError, setup_fault


def main() -> None:
    """Entry point: errors of the user's input and of the machine are one clear line, not a traceback."""
    keep_interrupts()
    from predimem.cli.app import app  # only now, as a Ctrl-C may come while it is imported

    try:
        app()
    except (ValueError, SetupError) as error:
        raise SystemExit(f"predimem: {error}") from None
    except OSError as error:
        raise SystemExit(f"predimem: {explain(error)}") from None
    except Exception as error:
        fault = setup_fault(error)  # such as a library's own error for a full disk
        if fault is None:
            raise
        raise SystemExit(f"predimem: {explain(fault)}") from None
