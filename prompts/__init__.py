"""The built-in evaluators' prompts, one YAML file each."""
