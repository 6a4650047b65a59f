"""One small module per command: parse, call, translate errors."""
