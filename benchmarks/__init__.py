"""Programs that measure speed and memory; not part of the installed package."""
