"""Mail: how it is sent, and which addresses the site takes."""
