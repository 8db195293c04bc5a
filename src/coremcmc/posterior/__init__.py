"""The weighted and the full posterior: density, derivatives, mode."""
