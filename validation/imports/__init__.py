"""History that was judged elsewhere: read line by line, stored whole or not at all."""
