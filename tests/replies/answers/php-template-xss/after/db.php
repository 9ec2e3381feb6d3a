<?php
declare(strict_types=1);

const ENTRIES_PER_PAGE = 20;

function db(): PDO
{
    static $pdo = null;
    if ($pdo === null) {
        $pdo = new PDO('sqlite:' . __DIR__ . '/guestbook.db');
        $pdo->setAttribute(PDO::ATTR_ERRMODE, PDO::ERRMODE_EXCEPTION);
        $pdo->setAttribute(PDO::ATTR_DEFAULT_FETCH_MODE, PDO::FETCH_ASSOC);
        $pdo->exec('CREATE TABLE IF NOT EXISTS entries (id INTEGER PRIMARY KEY, name TEXT, message TEXT, created TEXT)');
    }
    return $pdo;
}

function add_entry(string $name, string $message): void
{
    $stmt = db()->prepare("INSERT INTO entries (name, message, created)
                           VALUES (:name, :message, datetime('now'))");
    $stmt->execute([':name' => $name, ':message' => $message]);
}

function get_entries(int $page): array
{
    $stmt = db()->prepare('SELECT * FROM entries ORDER BY id DESC LIMIT :limit OFFSET :offset');
    $stmt->bindValue(':limit', ENTRIES_PER_PAGE, PDO::PARAM_INT);
    $stmt->bindValue(':offset', ($page - 1) * ENTRIES_PER_PAGE, PDO::PARAM_INT);
    $stmt->execute();
    return $stmt->fetchAll();
}
