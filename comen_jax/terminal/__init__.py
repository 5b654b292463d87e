"""What a person sees: lines, and at most one display of bars below them."""
