"""Inputs that move: certificates, separation, trees that lose least."""
