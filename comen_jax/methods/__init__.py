"""Methods: base.py says what one is, registry.py lists them by name."""
