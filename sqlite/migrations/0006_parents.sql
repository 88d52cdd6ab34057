-- Exchange.Parent. NULL: the exchange goes on from the one before it.
ALTER TABLE exchanges ADD COLUMN parent TEXT;
