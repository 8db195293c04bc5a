"""The commands of ``coremcmc``, a module each. They import the package when they run."""
