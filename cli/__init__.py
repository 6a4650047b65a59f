"""Files in, files out, a terminal."""
