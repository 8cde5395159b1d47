"""What the command line does, one command a file; ``cli`` only parses, calls and prints."""
