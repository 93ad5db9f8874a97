"""Walking robots whose bodies are designs: simulators for the tasks `ant` and `dkitty`. They need `diffbbo[robots]`."""
