"""The models that people try to fool: registering, asking, serving and replacing them."""
