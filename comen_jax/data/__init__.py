"""Data sets as rows of uint8 images."""
