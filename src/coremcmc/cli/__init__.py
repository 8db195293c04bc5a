"""From the command line to a fit and back."""
