<?php
declare(strict_types=1);

require __DIR__ . '/db.php';

function h(?string $text): string
{
    return htmlspecialchars($text ?? '', ENT_QUOTES | ENT_SUBSTITUTE, 'UTF-8');
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
$entries = get_entries($page);
?>
<!DOCTYPE html>
<html lang="de">
<head><meta charset="utf-8"><title>Gästebuch</title></head>
<body>
<h1>Gästebuch</h1>
<?php if (isset($error)): ?>
  <p class="error"><?= h($error) ?></p>
<?php endif; ?>
<form method="post">
  <input name="name" value="<?= h($_POST['name'] ?? '') ?>">
  <textarea name="message"><?= h($_POST['message'] ?? '') ?></textarea>
  <button>Eintragen</button>
</form>
<?php foreach ($entries as $e): ?>
  <article>
    <h2><?= h($e['name']) ?> <small><?= h($e['created']) ?></small></h2>
    <p><?= nl2br(h($e['message'])) ?></p>
  </article>
<?php endforeach ?>
<a href="?page=<?= $page + 1 ?>">&Auml;ltere &raquo;</a>
</body>
</html>
