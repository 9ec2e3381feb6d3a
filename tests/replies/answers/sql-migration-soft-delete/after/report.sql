/* monthly: users, orders and revenue */
SELECT u.name,
       count(o.id)                                AS orders,
       coalesce(sum(o.total), 0)                  AS revenue,
       to_char(max(o.created_at), 'YYYY-MM-DD')   AS "last order"
FROM users u
LEFT JOIN orders o ON o.user_id = u.id
                  AND o.created_at >= date_trunc('month', now())
                  AND o.deleted_at IS NULL
WHERE u.email NOT LIKE '%@example.com'
  AND u.deleted_at IS NULL
GROUP BY u.id, u.name
ORDER BY revenue DESC;
