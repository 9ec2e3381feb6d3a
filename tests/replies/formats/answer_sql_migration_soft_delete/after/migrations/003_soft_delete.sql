-- 003: soft delete
BEGIN;

ALTER TABLE users  ADD COLUMN deleted_at timestamptz;
ALTER TABLE orders ADD COLUMN deleted_at timestamptz;

DROP VIEW active_users;

CREATE VIEW active_users AS
SELECT u.* FROM users u
WHERE u.deleted_at IS NULL
  AND EXISTS (
      SELECT 1 FROM orders o
      WHERE o.user_id = u.id
        AND o.deleted_at IS NULL
  );

-- only live rows are looked up by user
CREATE INDEX orders_live_user_id_idx
    ON orders (user_id)
    WHERE deleted_at IS NULL;

COMMIT;
