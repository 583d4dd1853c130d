"""What knows nothing of trees: errors, checks of parameters, files, compiled loops."""
