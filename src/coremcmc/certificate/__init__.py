"""How far the coreset posterior is from the full posterior, and a verdict in words."""
