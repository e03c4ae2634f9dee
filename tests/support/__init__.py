"""What tests share: rows, pages, programs that are started, and the sites of others."""
