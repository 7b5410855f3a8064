"""What this is, in numbers."""

VERSION = "0.1.0"
API = "v1"
