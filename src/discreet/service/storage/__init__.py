"""What is durable: tables, transactions, slots, documents, and the anchor outside the database."""
