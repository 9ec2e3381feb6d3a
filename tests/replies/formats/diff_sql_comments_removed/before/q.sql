-- drop everything
++ old
SELECT 1;
SELECT 2;
