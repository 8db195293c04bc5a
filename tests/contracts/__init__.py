"""Contracts of the library's parts: test classes to be inherited, collected only where they are."""
