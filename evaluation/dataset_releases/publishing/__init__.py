"""Publish a released version outside of the site: on the Hugging Face Hub, or on Zenodo by DOI."""
