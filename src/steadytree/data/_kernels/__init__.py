"""Compiled loops over columns and binned rows."""
