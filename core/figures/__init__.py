"""Charts with axes. One description of shapes serves pages and files for papers."""
