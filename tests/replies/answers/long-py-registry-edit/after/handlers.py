"""One handler for each action."""
import csv
import io
import json

HANDLERS = {}


def handler(name):
    def register(function):
        HANDLERS[name] = function
        return function
    return register


def need(user, permission):
    if permission not in user.get("permissions", ()):
        raise PermissionError(f"{user.get('name')} may not {permission}")


def to_csv(items):
    """The items as CSV, with a header line of all the fields that occur."""
    fields = list(dict.fromkeys(key for item in items for key in item))
    out = io.StringIO()
    writer = csv.DictWriter(out, fieldnames=fields, restval="", lineterminator="\n")
    if fields:
        writer.writeheader()
    writer.writerows(items)
    return out.getvalue()


@handler("create")
def do_create(user, items, **options):
    """Create the items, and say what was done."""
    need(user, "edit")
    done = []
    for item in items:
        if item.get("locked") and not options.get("force"):
            continue
        item["last"] = "create"
        done.append(item)
    return json.dumps({"action": "create", "count": len(done), "items": done})


@handler("read")
def do_read(user, items, **options):
    """Read the items, and say what was done."""
    need(user, "edit")
    done = []
    for item in items:
        if item.get("locked") and not options.get("force"):
            continue
        item["last"] = "read"
        done.append(item)
    return json.dumps({"action": "read", "count": len(done), "items": done})


@handler("update")
def do_update(user, items, **options):
    """Update the items, and say what was done."""
    need(user, "edit")
    done = []
    for item in items:
        if item.get("locked") and not options.get("force"):
            continue
        item["last"] = "update"
        done.append(item)
    return json.dumps({"action": "update", "count": len(done), "items": done})


@handler("delete")
def do_delete(user, items, **options):
    """Delete the items, and say what was done."""
    need(user, "admin")
    done = []
    for item in items:
        if item.get("locked") and not options.get("force"):
            continue
        item["last"] = "delete"
        done.append(item)
    return json.dumps({"action": "delete", "count": len(done), "items": done})


@handler("list")
def do_list(user, items, **options):
    """List the items, and say what was done."""
    need(user, "edit")
    done = []
    for item in items:
        if item.get("locked") and not options.get("force"):
            continue
        item["last"] = "list"
        done.append(item)
    return json.dumps({"action": "list", "count": len(done), "items": done})


@handler("search")
def do_search(user, items, **options):
    """Search the items, and say what was done."""
    need(user, "edit")
    done = []
    for item in items:
        if item.get("locked") and not options.get("force"):
            continue
        item["last"] = "search"
        done.append(item)
    return json.dumps({"action": "search", "count": len(done), "items": done})


@handler("export")
def do_export(user, items, **options):
    """Export the items as CSV."""
    need(user, "edit")
    done = []
    for item in items:
        if item.get("locked") and not options.get("force"):
            continue
        item["last"] = "export"
        done.append(item)
    return to_csv(done)


@handler("import")
def do_import(user, items, **options):
    """Import the items, and say what was done."""
    need(user, "edit")
    done = []
    for item in items:
        if item.get("locked") and not options.get("force"):
            continue
        item["last"] = "import"
        done.append(item)
    return json.dumps({"action": "import", "count": len(done), "items": done})


@handler("archive")
def do_archive(user, items, **options):
    """Archive the items, and say what was done."""
    need(user, "admin")
    done = []
    for item in items:
        if item.get("locked") and not options.get("force"):
            continue
        item["last"] = "archive"
        done.append(item)
    return json.dumps({"action": "archive", "count": len(done), "items": done})


@handler("restore")
def do_restore(user, items, **options):
    """Restore the items, and say what was done."""
    need(user, "edit")
    done = []
    for item in items:
        if item.get("locked") and not options.get("force"):
            continue
        item["last"] = "restore"
        done.append(item)
    return json.dumps({"action": "restore", "count": len(done), "items": done})


@handler("share")
def do_share(user, items, **options):
    """Share the items, and say what was done."""
    need(user, "edit")
    done = []
    for item in items:
        if item.get("locked") and not options.get("force"):
            continue
        item["last"] = "share"
        done.append(item)
    return json.dumps({"action": "share", "count": len(done), "items": done})


@handler("move")
def do_move(user, items, **options):
    """Move the items, and say what was done."""
    need(user, "edit")
    done = []
    for item in items:
        if item.get("locked") and not options.get("force"):
            continue
        item["last"] = "move"
        done.append(item)
    return json.dumps({"action": "move", "count": len(done), "items": done})


@handler("copy")
def do_copy(user, items, **options):
    """Copy the items, and say what was done."""
    need(user, "edit")
    done = []
    for item in items:
        if item.get("locked") and not options.get("force"):
            continue
        item["last"] = "copy"
        done.append(item)
    return json.dumps({"action": "copy", "count": len(done), "items": done})


@handler("tag")
def do_tag(user, items, **options):
    """Tag the items, and say what was done."""
    need(user, "edit")
    done = []
    for item in items:
        if item.get("locked") and not options.get("force"):
            continue
        item["last"] = "tag"
        done.append(item)
    return json.dumps({"action": "tag", "count": len(done), "items": done})


@handler("lock")
def do_lock(user, items, **options):
    """Lock the items, and say what was done."""
    need(user, "edit")
    done = []
    for item in items:
        if item.get("locked") and not options.get("force"):
            continue
        item["last"] = "lock"
        done.append(item)
    return json.dumps({"action": "lock", "count": len(done), "items": done})


@handler("unlock")
def do_unlock(user, items, **options):
    """Unlock the items, and say what was done."""
    need(user, "edit")
    done = []
    for item in items:
        if item.get("locked") and not options.get("force"):
            continue
        item["last"] = "unlock"
        done.append(item)
    return json.dumps({"action": "unlock", "count": len(done), "items": done})


@handler("publish")
def do_publish(user, items, **options):
    """Publish the items, and say what was done."""
    need(user, "edit")
    done = []
    for item in items:
        if item.get("locked") and not options.get("force"):
            continue
        item["last"] = "publish"
        done.append(item)
    return json.dumps({"action": "publish", "count": len(done), "items": done})


@handler("draft")
def do_draft(user, items, **options):
    """Draft the items, and say what was done."""
    need(user, "edit")
    done = []
    for item in items:
        if item.get("locked") and not options.get("force"):
            continue
        item["last"] = "draft"
        done.append(item)
    return json.dumps({"action": "draft", "count": len(done), "items": done})
