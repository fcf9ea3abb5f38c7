"""The version of trilift, as the command line, the JSON and emitted files print it."""

VERSION = "0.1.0"
