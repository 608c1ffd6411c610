//! What an .rpd file is: create, open, check, sessions, ids, rows.
