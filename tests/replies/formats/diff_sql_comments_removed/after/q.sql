-- keep everything
SELECT 1;
SELECT 2;
