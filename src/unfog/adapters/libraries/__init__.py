"""Other people's bandits behind our denoiser: one thin file for each library, none of which imports it."""
