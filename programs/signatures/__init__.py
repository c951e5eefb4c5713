"""The signature language: lines of axis letters, what they say, and arrays laid out as they say."""
