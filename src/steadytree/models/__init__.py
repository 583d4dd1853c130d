"""Fitted models, trees and scorecards, and their other forms."""
