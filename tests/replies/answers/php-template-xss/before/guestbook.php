<?php
declare(strict_types=1);

$pdo = new PDO('sqlite:' . __DIR__ . '/guestbook.db');
$pdo->setAttribute(PDO::ATTR_ERRMODE, PDO::ERRMODE_EXCEPTION);
$pdo->exec('CREATE TABLE IF NOT EXISTS entries (id INTEGER PRIMARY KEY, name TEXT, message TEXT, created TEXT)');

if ($_SERVER['REQUEST_METHOD'] === 'POST') {
    $name = trim($_POST['name'] ?? '');
    $message = trim($_POST['message'] ?? '');
    if ($name !== '' && $message !== '') {
        $pdo->exec("INSERT INTO entries (name, message, created)
                    VALUES ('$name', '$message', datetime('now'))");
        header('Location: guestbook.php');
        exit;
    }
    $error = 'Name und Nachricht dürfen nicht leer sein.';
}

$page = (int) ($_GET['page'] ?? 1);
$entries = $pdo->query('SELECT * FROM entries ORDER BY id DESC LIMIT 20 OFFSET ' . ($page - 1) * 20)->fetchAll();
?>
<!DOCTYPE html>
<html lang="de">
<head><meta charset="utf-8"><title>Gästebuch</title></head>
<body>
<h1>Gästebuch</h1>
<?php if (isset($error)): ?>
  <p class="error"><?= $error ?></p>
<?php endif; ?>
<form method="post">
  <input name="name" value="<?= $_POST['name'] ?? '' ?>">
  <textarea name="message"><?= $_POST['message'] ?? '' ?></textarea>
  <button>Eintragen</button>
</form>
<?php foreach ($entries as $e): ?>
  <article>
    <h2><?= $e['name'] ?> <small><?= $e['created'] ?></small></h2>
    <p><?= nl2br($e['message']) ?></p>
  </article>
<?php endforeach ?>
<a href="?page=<?= $page + 1 ?>">&Auml;ltere &raquo;</a>
</body>
</html>
