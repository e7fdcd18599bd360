"""The commands of `agora`, one module each. registry.py lists them.

Empty: `agora` imports it before it handles stop signals.
"""
