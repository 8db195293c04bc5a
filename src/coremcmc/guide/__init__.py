"""What passes over all rows teach before the training."""
