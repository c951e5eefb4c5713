"""The front end for real code: from ``path/to/file.py::name`` to findings, a record and a table."""
