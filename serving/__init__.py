"""The model server: transformers models behind the endpoint wire format, without Django."""
