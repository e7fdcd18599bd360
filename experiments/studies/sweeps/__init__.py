"""Many runs in virtual time: the engine that does them, and `agora sweep` on top of it."""
