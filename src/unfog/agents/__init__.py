"""What a decision maker does: denoise, learn, choose. Nothing here ever sees the world."""
