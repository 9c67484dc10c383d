"""Files and folders as sources of named columns."""
