"""Image files to rows: read, checked, split, decoded, stored."""
