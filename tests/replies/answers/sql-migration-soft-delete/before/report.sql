/* monthly: users, orders and revenue */
SELECT u.name,
       count(o.id)                                AS orders,
       sum(o.total)                               AS revenue,
       to_char(max(o.created_at), 'YYYY-MM-DD')   AS "last order"
FROM users u
JOIN orders o ON o.user_id = u.id
WHERE o.created_at >= date_trunc('month', now())
  AND u.email NOT LIKE '%@example.com'
GROUP BY u.id, u.name
ORDER BY revenue DESC;
