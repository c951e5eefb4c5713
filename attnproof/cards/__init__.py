"""Cards: each law of encodings decided for each encoding, recorded and printed."""
