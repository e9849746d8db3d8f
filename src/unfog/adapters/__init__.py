"""unfog in other people's tools, and other people's bandits behind our denoiser."""

from unfog.adapters.wrap import wrap

__all__ = ["wrap"]
