"""Names of files that hold secrets, and the variables in such a file."""

from msgspec import Struct

from codingagent.model.patterns import lazy_pattern, words

# Files and folders of credentials, in lower case, with or without a leading dot or underscore.
NAMES = words(
    # Logins and keys.
    "netrc authinfo authinfo.gpg git-credentials id_rsa id_dsa id_ecdsa id_ecdsa_sk id_ed25519 id_ed25519_sk",
    # pip, npm, cargo, gem, Maven.
    "pypirc npmrc credentials.toml settings-security.xml",
    # gh, aws, gcloud, azure, docker, kube, terraform, vault, s3cmd, rclone, boto.
    "access_tokens.db credentials.db legacy_credentials adc.json accesstokens.json",
    "application_default_credentials.json msal_token_cache.json azureprofile.json dockercfg",
    "dockerconfigjson kubeconfig terraformrc terraform.rc credentials.tfrc.json vault-token vault_token",
    "s3cfg rclone.conf boto",
    # Databases.
    "pgpass pgpass.conf pg_service.conf my.cnf mylogin.cnf",
    # Any application.
    "credential credentials credentials.json credentials.yml credentials.yaml credentials.ini",
    "credentials.xml oauth_creds.json service-account.json service_account.json client_secret.json",
    "client_secrets.json secret secrets secret.json secrets.json secrets.toml secrets.yml secrets.yaml",
    "token.json tokens.json token.txt access_token refresh_token api_key apikey api_token",
    "htpasswd password passwords password.txt passwords.txt master.key shadow vault_pass vault_pass.txt",
    "vault-pass private_key private_key.txt serviceaccountkey.json gcp-key.json ftppass",
    "ftpconfig sftp.json sftp-config.json msmtprc fetchmailrc wpa_supplicant.conf local.settings.json",
    "key.properties keystore.properties",
)
# Where a common name holds credentials only in its own folder.
_PLACES = words(
    "docker/config.json kube/config gh/hosts.yml aws/config cargo/config.toml codex/auth.json",
    "composer/auth.json opencode/auth.json vercel/auth.json",
)
_SECRET = lazy_pattern(
    r"(?:\.env(?!\.(?:example|sample|template|dist|defaults)$)(?:[._-][^/]*)?|id_[a-z0-9_]+"
    r"|(?:[^/]+\.env|\.envrc|\.dev\.vars|secrets)(?:\.(?:local|prod|production|staging|development|test))?"
    r"|ssh_host_[a-z0-9]+_key|(?:.*firebase-adminsdk-|service[-_]account|client_secret).*\.json"
    r"|(?:(?:[^/]*[._-])?(?:secrets?|credentials?|passwords)|password)"
    r"\.(?:json|ya?ml|toml|ini|txt|env|properties|csv)"
    r"|[^/]*\.(?:pem|key|p12|pfx|p8|ppk|jks|jceks|keystore|bks|kdbx?|tfvars|tfvars\.json|pkcs12|ovpn))"
)
# No pattern above fits such a name, unless it begins with .env: most files are told by their ends.
_HARMLESS = tuple(
    words(
        ".py .pyi .js .ts .tsx .jsx .c .h .cc .cpp .hpp .go .rs .rb .java .kt .cs .swift .php .html .css",
        ".scss .vue .md .rst .po .png .jpg .gif .svg",
    )
)
# What editors and people add to the name of a copy.
_COPY = lazy_pattern(r"(?:~|\.(?:bak|backup|old|orig|save|swp|copy|\d))+$")
_EXAMPLE = lazy_pattern(r"example|sample|template")
# Of a file of keys.
_BLOCK = lazy_pattern(r"-----(?:BEGIN|END) ([^-]{1,40})-----")


def is_secret_file(path: str) -> bool:
    """Return whether a file of this name (separated by `/` or `\\`) holds secrets."""
    if path.endswith(_HARMLESS) and ".env" not in path:
        return False
    folders, _, name = path.replace("\\", "/").casefold().rpartition("/")
    name = _COPY.sub("", name).strip("#")
    if _EXAMPLE.search(name):
        return False
    inside = f"{folders.rpartition('/')[2].lstrip('._')}/{name}"
    return name.lstrip("._") in NAMES or inside in _PLACES or _SECRET.fullmatch(name) is not None


def is_public(path: str, text: str) -> bool:
    """Return whether a file of keys has certificates only, which everyone may see."""
    return path.casefold().endswith(".pem") and {*_BLOCK.findall(text)} == {"CERTIFICATE"}


class Variable(Struct, frozen=True):
    """A value in a secret file, by offsets into its text; `name` is empty if it has none."""

    name: str
    start: int
    end: int


_ASSIGNED = lazy_pattern(
    r"""[ \t]*(?:[#;]+[ \t]*(?=(?:export )?[\w.-]+[ \t]*=))?"""
    r"""(?:export[ \t]+|set[ \t]+|-[ \t]+|//)?["']?(?P<name>[\w.$/@:\[\]-]+?)["']?"""
    r"""[ \t]*(?:=|:(?=[ \t"'])|[ \t](?=[^ \t]))[ \t]*(?P<value>[^\r\n]*)"""
)
_TRIM = " \t\r,;"


def variables_in(text: str) -> list[Variable]:
    """Return the variables of a secret file; a line of another form is a value without a name.

    Comments and blank lines have no entry, except for an assignment in a comment. Every character of a value
    is inside its span.
    """
    found: list[Variable] = []
    start = 0
    for line in text.splitlines(keepends=True):
        bare = line.strip()
        match = _ASSIGNED.match(line) if bare else None
        is_comment = bare.startswith(("#", ";")) and not match
        if not is_comment and not bare.startswith(("<!--", "-----")) and bare.strip("{}[](),;"):
            name, first, last = "", line.index(bare), line.index(bare) + len(bare)
            if match and match["value"].strip(_TRIM):
                name, first = match["name"], match.start("value")
                last = first + len(match["value"].rstrip(_TRIM))
                if line[first] in "\"'" and last - first > 1 and line[last - 1] == line[first]:
                    first, last = first + 1, last - 1
            elif match:
                first = last
            if first < last and line[first:last].strip("{}[]"):
                found.append(Variable(name, start + first, start + last))
        start += len(line)
    return found
