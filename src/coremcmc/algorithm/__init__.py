"""The algorithm: one iteration, the hot-start test, and the loop around them."""
