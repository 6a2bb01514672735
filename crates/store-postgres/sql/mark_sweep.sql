-- Marks that nobody asks for any more.
DELETE FROM redrive.mark WHERE noted < now() - interval '5 minutes'
