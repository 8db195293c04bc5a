"""The estimate of the KL gradient, and what takes the noise out of it."""
