"""What nature does: the only rooms that hold the truth (theta*, gamma*, c_t)."""
