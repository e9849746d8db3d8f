"""The arithmetic behind `unfog.adapters.sklearn.Denoiser`: NumPy alone, nothing of scikit-learn."""
