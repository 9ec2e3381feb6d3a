"""Which files hold secrets by their names, and what is in them."""

from codingagent.secrets.files import NAMES, is_secret_file, variables_in

SECRET = (
    ".env .env.local deploy/.env.production prod.env .envrc server.pem tls/site.key id_rsa id_ed25519 .netrc"
    " .pgpass .npmrc .pypirc .htpasswd app.jks vault.kdbx cert.p12 .aws/credentials .docker/config.json "
    ".kube/config conf/credentials.json secrets.yml prod.tfvars .git-credentials config/master.key A\\B\\.ENV"
    " .env.py .env~ #.env# .env_prod server.key.old prod.env.bak id_rsa.1 prod-secrets.yaml"
    " db_credentials.json .dev.vars .dev.vars.production .envrc.local app.env.local .kamal/secrets.staging"
    " .codex/auth.json key.properties .vault_pass ssh_host_ed25519_key x-firebase-adminsdk-ab.json"
    " prod.auto.tfvars.json local.settings.json serviceAccountKey.json service-account-prod.json"
    " .vscode/sftp.json secrets.properties"
)
PLAIN = (
    ".env.example .env.sample .env.template id_rsa.pub id_ed25519.pub secrets.py tokens.py config.json"
    " environment.py password_reset.html keys.md credentials/views.py src/env.ts id_card/view.js"
    " .env.example.bak ChannelCredentials.yaml test_user_password.yml locales/en/auth.json"
    " group_vars/all/vars prod.env.example src/env.mjs .dev.vars.example"
)


def test_names_of_secret_files() -> None:
    """Environment files, keys, keystores and credentials; no examples, public keys or sources."""
    assert [path for path in (*SECRET.split(), *NAMES) if not is_secret_file(path)] == []
    assert [path for path in PLAIN.split() if is_secret_file(path)] == []


def test_every_value_of_a_secret_file_has_a_span() -> None:
    """A view of names must be able to hide all else."""
    text = "# why\nexport A='one two'\nB = x=y\r\n\nC: three\nmachine h login me\n"
    text += "#F=six\n; export G=7 8\n# see H = I\n"
    text += 'AAAABBBB\n{\n "D": "4",\n}\nE=\n'
    shown = [(name, text[start:end]) for name, start, end in variables_in(text)]
    assert shown == [
        ("A", "one two"),
        ("B", "x=y"),
        ("C", "three"),
        ("machine", "h login me"),
        ("F", "six"),
        ("G", "7 8"),
        ("", "AAAABBBB"),
        ("D", "4"),
    ]
