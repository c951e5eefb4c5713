"""What every page and record consists of: parts of pages, evidence, and the line of a verdict."""
