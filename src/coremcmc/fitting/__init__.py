"""From a call to a fit."""
