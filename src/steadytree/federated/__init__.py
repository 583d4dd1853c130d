"""Several holders of data, none of whom shows a row."""
