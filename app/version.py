"""The version of the service and of its API."""

VERSION = "0.1.0"
API = "v1"
