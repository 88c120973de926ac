"""What the load tests share. One idea a file; read them in this order:

    processes   what we start, we end
    machine     cores to pin to, limits, and what the report says of the machine
    redis       a Redis of our own, and how often it was asked
    servers     one of the seven, from its banner to its end
    ab          ab, run and understood
    work        did every page cost the same?
    cells       one cell of a table: one server at one number of clients
    table       Markdown
    progress    what runs, and how long is left
"""


class Trouble(Exception):
    """Why something could not be measured, in words for the report."""
