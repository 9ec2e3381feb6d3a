"""Lists of words by which names and values are judged, and where a word is in a text."""

from codingagent.model.patterns import words

Places = dict[str, list[int]]
"""Where words are in a text; one that is not in it has no entry."""


def places(text: str, lead: str) -> list[int]:
    """Return where a word is in a text, not overlapping."""
    found: list[int] = []
    at = text.find(lead)
    while at >= 0:
        found.append(at)
        at = text.find(lead, at + len(lead))
    return found


# Ends of the names of files in which a bare word is a variable.
CODE = words(
    "py pyi js jsx mjs cjs ts tsx vue svelte go java kt kts scala groovy gradle c h cc cpp cxx hpp m mm",
    "cs fs vb rb erb rs swift php pl pm lua r jl ex exs erl hs clj dart sol zig nim sql ipynb html htm",
    "css scss less proto graphql tf hcl ps1 psm1 toml xsl coffee elm ml v asm s",
)

# Ends of the names of files in which anything may be written.
PROSE = words("md txt rst adoc org log tex po pot diff patch csv tsv out")

# Values that are not secrets: types, states, placeholders.
PLAIN = words(
    "none null nil undefined true false yes no on off string str text bytes int integer number float bool",
    "boolean object array any void char varchar optional required require prompt default empty unset",
    "unknown auto automatic inherit password passwd passphrase passwort pwd pass secret secrets token",
    "tokens key keys apikey api_key credential credentials auth user username login admin_password hidden",
    "masked encrypted hashed plain plaintext basic bearer test testing tests dev development prod",
    "production staging local example value values todo tbd n/a na foo bar baz qux abc abcd asdf blah xxx",
    "xxxx invalid valid wrong correct incorrect missing expired changed reset enabled disabled allow deny",
    "always never ask env environment stdin file config static dynamic public private self this function",
    "return const let new await async md5 sha1 sha256 sha512 bcrypt scrypt argon2 nopass nopassword",
)

# A name with one of these last is about a secret, and holds none.
ABOUT = words(
    "type name field fields id ids url uri path file filename dir folder label title text hint help",
    "placeholder message msg error errors prompt length len size count min max limit regex pattern format",
    "policy rule rules strength expiry expires expiration expire ttl timeout time date at age updated",
    "created changed reset required enabled disabled visible valid exists index idx position pos kind",
    "class style color icon input form view page route endpoint header headers prefix suffix separator",
    "sep delimiter param parameter params arg args argument option options var env column table store",
    "manager provider providers service handler helper factory builder generator validator parser reader",
    "writer scope scopes algorithm alg encoding encoder version source list map set usage method mode",
    "state status role user username email host port domain realm issuer audience subject hash hashed",
    "digest checksum fingerprint sum md5 sha sha1 sha256 hasher verify check confirm confirmation",
    "description comment note link button screen dialog module plugin middleware backend strategy schema",
    "model entity dto ref reference arn selector template change forgot request response event action",
    "callback fn func function test mock fixture group groups attempts retries login logout signup lock",
    "iterations rounds cost",
)

# More of these.
SETTINGS = words(
    "app bucket database db debug lang level locale module namespace node package project pythonpath region",
    "service site team theme timezone title tz zone",
)

# A name with one of these holds no secret.
PUBLIC = words(
    "public pub publishable publish verify verification cache primary foreign sort hash partition"
)

# A name with one of these beside `key` holds a secret.
KEYS = words(
    "api secret access private priv encryption encrypt decryption cipher crypto signing sign auth master",
    "account shared service server client app application license licence storage ssh hmac jwt session",
    "cookie aes rsa deploy admin root subscription webhook bot ssl tls rpc write read ingest live prod",
    "integration function host instrumentation security secure logged nonce seed wallet",
)

# Words after which a name is judged by the word before.
TRAILING = words("value string str default prod dev test data base raw b s")
