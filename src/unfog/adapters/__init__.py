"""unfog inside other tools, and other libraries' bandits fed with our denoised contexts."""

from unfog.adapters.wrap import wrap

__all__ = ["wrap"]
