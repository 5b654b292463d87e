"""Command: a finished run and images -> class, probability, latent domain."""
