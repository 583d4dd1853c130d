"""A model in other forms, each compared with the model before it is handed over."""
