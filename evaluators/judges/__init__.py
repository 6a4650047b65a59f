"""Who answers: any OpenAI-compatible endpoint, or the offline judge."""
