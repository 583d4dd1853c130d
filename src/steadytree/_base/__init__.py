"""The foundation, independent of trees: errors, validation, files, clocks, compiled loops."""
