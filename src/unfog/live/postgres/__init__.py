"""The logs of problems in PostgreSQL: several processes share a database, and each problem has one owner."""
