-- 003: soft delete for users and orders
BEGIN;

ALTER TABLE users  ADD COLUMN deleted_at timestamptz;
ALTER TABLE orders ADD COLUMN deleted_at timestamptz;

-- u.* was expanded when the view was made, so it has to be made anew
DROP VIEW active_users;

CREATE VIEW active_users AS
SELECT u.* FROM users u
WHERE u.deleted_at IS NULL
  AND EXISTS (
    SELECT 1 FROM orders o
    WHERE o.user_id = u.id
      AND o.deleted_at IS NULL
  );

-- for the EXISTS above and the report
CREATE INDEX orders_user_id_live_idx ON orders (user_id, created_at)
    WHERE deleted_at IS NULL;

COMMIT;
