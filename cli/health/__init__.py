"""What `ctxrel doctor` looks at; each module finds something out and changes nothing."""
