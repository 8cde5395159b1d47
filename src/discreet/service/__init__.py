"""``discreet serve``: decisions for real users; durable rows in, private releases out."""
