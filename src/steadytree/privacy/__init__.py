"""The only place where noise for privacy is drawn, and where spending it is written down."""
