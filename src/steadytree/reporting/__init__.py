"""Text and pictures: collect (model and data -> plain dict), then render (dict -> text, HTML)."""
