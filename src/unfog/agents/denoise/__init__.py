"""Noisy context, and history, to a belief about the true context. One denoiser a file."""
