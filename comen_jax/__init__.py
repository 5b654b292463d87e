"""COMEN: compound domain generalization in JAX and Flax."""
