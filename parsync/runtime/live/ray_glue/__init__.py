"""Ray as the live runtime uses it. Only modules of this folder import Ray."""
