<?php
declare(strict_types=1);

require_once __DIR__ . '/db.php';

function e(?string $value): string
{
    return htmlspecialchars($value ?? '', ENT_QUOTES | ENT_SUBSTITUTE, 'UTF-8');
}

if ($_SERVER['REQUEST_METHOD'] === 'POST') {
    $name = trim($_POST['name'] ?? '');
    $message = trim($_POST['message'] ?? '');
    if ($name !== '' && $message !== '') {
        add_entry($name, $message);
        header('Location: guestbook.php');
        exit;
    }
    $error = 'Name und Nachricht dürfen nicht leer sein.';
}

$page = max(1, (int) ($_GET['page'] ?? 1));
$entries = find_entries($page);
?>
<!DOCTYPE html>
<html lang="de">
<head><meta charset="utf-8"><title>Gästebuch</title></head>
<body>
<h1>Gästebuch</h1>
<?php if (isset($error)): ?>
  <p class="error"><?= e($error) ?></p>
<?php endif; ?>
<form method="post">
  <input name="name" value="<?= e($_POST['name'] ?? '') ?>">
  <textarea name="message"><?= e($_POST['message'] ?? '') ?></textarea>
  <button>Eintragen</button>
</form>
<?php foreach ($entries as $entry): ?>
  <article>
    <h2><?= e($entry['name']) ?> <small><?= e($entry['created']) ?></small></h2>
    <p><?= nl2br(e($entry['message'])) ?></p>
  </article>
<?php endforeach ?>
<a href="?page=<?= $page + 1 ?>">&Auml;ltere &raquo;</a>
</body>
</html>
