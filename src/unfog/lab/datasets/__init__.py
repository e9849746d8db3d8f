"""Data sets as problems and as logs, a module each; `files` finds their files and checks them."""
