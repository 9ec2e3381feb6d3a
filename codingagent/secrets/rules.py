"""The table of known kinds: secrets whose form alone says what they are.

Formats are those that the issuers publish; many are also listed by gitleaks (MIT licence, Copyright (c)
2019 Zachary Rice; the notice is in `codingagent/LICENSE`). The expressions here are our own.
"""

import base64
import contextlib
import re
from collections.abc import Callable
from functools import cache

from msgspec import Struct

from codingagent.secrets import values
from codingagent.secrets.values import Form


def any_value(value: str, _form: Form) -> bool:
    """Accept what the expression matched, unless it is an example."""
    return not values.is_example(value)


class Pattern(Struct, frozen=True):
    """One kind of secret: a literal lead, and the expression that matches from there.

    The secret is group 1 if the expression has one. With `back`, the lead is inside the secret, which
    begins at most so many characters before it.
    """

    kind: str
    leads: tuple[str, ...]
    expression: str
    back: int = 0
    check: Callable[[str, Form], bool] = any_value


@cache
def compiled(expression: str) -> re.Pattern[str]:
    """Return an expression, compiled when its lead is first seen: most never are."""
    return re.compile(expression, re.ASCII)


_UUID = "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_HEX = "[0-9a-fA-F]"
_ALNUM = "[0-9A-Za-z]"
_WORD = "[0-9A-Za-z_-]"
_BASE64 = "[0-9A-Za-z+/]"
# As it is, and as shells and compose files escape it.
_DOLLAR = r"\\?\${1,2}"

# Kind, leads, and what follows a lead.
_AFTER = (
    # Clouds and their parts.
    ("AWS", "AKIA ASIA ABIA ACCA", "[A-Z2-7]{16}"),
    ("AWS", "ABSK", f"{_BASE64}{{100,300}}={{0,2}}"),
    ("AWS", "bedrock-api-key-", f"{_BASE64}{{40,2000}}={{0,2}}"),
    ("GOOGLE", "AIza", f"{_WORD}{{35}}"),
    ("GOOGLE", "GOCSPX-", f"{_WORD}{{28}}"),
    ("GOOGLE", "ya29.", f"{_WORD}{{30,2000}}"),
    ("GOOGLE", "1//0", f"{_WORD}{{40,200}}"),
    ("GOOGLE", "GOOG", f"{_ALNUM}{{57}}|1E{_ALNUM}{{20}}"),
    ("ALIBABA", "LTAI", f"{_ALNUM}{{16,26}}"),
    ("TENCENT", "AKID", f"{_ALNUM}{{32}}"),
    ("YANDEX", "AQVN", f"{_WORD}{{35,40}}"),
    ("YANDEX", "YCAJE YCMJE YCN", f"{_WORD}{{20,40}}"),
    ("YANDEX", "y0_", f"{_WORD}{{50,80}}"),
    ("YANDEX", "t1.", r"[\w-]{20,400}={0,2}\.[\w-]{86}={0,2}"),
    ("DIGITALOCEAN", "dop_v1_ doo_v1_ dor_v1_", f"{_HEX}{{64}}"),
    ("SCALEWAY", "SCW", "[0-9A-Z]{17}"),
    ("SCALINGO", "tk-us- tk-eu-", f"{_WORD}{{48}}"),
    ("FLYIO", "fo1_", f"{_WORD}{{43}}"),
    ("FLYIO", "fm1a_ fm1r_ fm2_", f"{_BASE64}{{80,2000}}={{0,3}}"),
    ("HEROKU", "HRKU-", f"{_WORD}{{36,60}}"),
    ("RENDER", "rnd_", f"{_ALNUM}{{28,40}}"),
    ("NETLIFY", "nfp_ nfc_ nfo_", f"{_ALNUM}{{36,40}}"),
    ("VERCEL", "vcp_ vck_ vci_ vca_ vcr_", f"{_ALNUM}{{24,60}}"),
    ("CLOUDFLARE", "v1.0-", f"{_HEX}{{24}}-{_HEX}{{146}}"),
    ("CLOUDFLARE", "cfut_ cfat_ cfk_", f"{_WORD}{{40,60}}"),
    ("DATABRICKS", "dapi", f"{_HEX}{{32}}(?:-\\d)?"),
    ("DATABRICKS", "dose", f"{_HEX}{{32}}"),
    ("PLANETSCALE", "pscale_tkn_ pscale_oauth_ pscale_pw_", r"[\w=.-]{32,64}"),
    ("NEON", "napi_", "[0-9a-z]{60,70}"),
    ("SUPABASE", "sbp_", f"(?:v0_)?{_HEX}{{40}}"),
    ("SUPABASE", "sb_secret_", f"{_WORD}{{20,60}}"),
    ("MONGODB", "mdb_sa_sk_", f"{_WORD}{{30,60}}"),
    ("CLICKHOUSE", "4b1d", f"{_ALNUM}{{38}}"),
    ("CONFLUENT", "cflt", f"{_BASE64}{{60}}"),
    ("TAILSCALE", "tskey-", f"[a-z]{{2,10}}-{_ALNUM}{{6,30}}-{_ALNUM}{{16,60}}"),
    ("OPENSHIFT", "sha256~", f"{_WORD}{{43}}"),
    ("PULUMI", "pul-", f"{_HEX}{{40}}"),
    ("DEFINED", "dnkey-", f"{_WORD}{{26}}-{_WORD}{{52}}"),
    # Vaults.
    ("VAULT", "hvs. hvb. hvr.", f"{_WORD}{{24,300}}"),
    ("DOPPLER", "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.", r"[\w.-]{40,90}"),
    ("INFISICAL", "st.", rf"{_HEX}{{24}}\.{_HEX}{{32}}\.{_HEX}{{32}}"),
    ("ONEPASSWORD", "ops_eyJ", f"{_BASE64}{{200,2000}}={{0,3}}"),
    ("ONEPASSWORD", "A3-", "[0-9A-Z]{6}-(?:[0-9A-Z]{11}|[0-9A-Z]{6}-[0-9A-Z]{5})(?:-[0-9A-Z]{5}){3}"),
    ("AGE", "AGE-SECRET-KEY-1", "[02-9AC-HJ-NP-Z]{58}"),
    # Forges, builds and registries of packages.
    ("GITHUB", "ghp_ gho_ ghu_ ghs_ ghr_", f"{_ALNUM}{{36,255}}"),
    ("GITHUB", "github_pat_", r"\w{22,255}"),
    ("GITLAB", "glpat- gldt- glrt- glrtr- glptt- glft- glffct- glimt-", r"[\w-]{20,300}(?:\.[\w.]{9,20})?"),
    ("GITLAB", "glagent- gloas- glsoat- glcbt- GR1348941", f"{_WORD}{{20,300}}"),
    ("BITBUCKET", "ATBB ATCTT3", r"[\w=-]{24,250}"),
    ("ATLASSIAN", "ATATT3 ATSTT3", r"[\w=-]{60,250}"),
    ("CIRCLECI", "CCIPAT_ CCIPRJ_", f"{_ALNUM}{{22}}_{_HEX}{{40}}"),
    ("BUILDKITE", "bkua_ bkat_ bkaj_ bkpt_ bkct_", f"{_ALNUM}{{40,70}}"),
    ("HARNESS", "pat. sat.", rf"[\w-]{{22}}\.{_ALNUM}{{24}}\.{_ALNUM}{{20}}"),
    ("SOURCEGRAPH", "sgp_", f"(?:(?:{_HEX}{{16}}|local)_)?{_HEX}{{40}}"),
    ("SONAR", "squ_ sqp_ sqa_", f"{_HEX}{{40}}"),
    ("SNYK", "snyk_uat. snyk_sat.", r"[\w.-]{40,200}"),
    ("JFROG", "AKCp", f"{_ALNUM}{{60,75}}"),
    ("JFROG", "cmVmd", f"{_ALNUM}{{59}}"),
    ("NPM", "npm_", f"{_ALNUM}{{36}}"),
    ("PYPI", "pypi-AgE", f"{_WORD}{{50,1000}}"),
    ("RUBYGEMS", "rubygems_", f"{_HEX}{{48}}"),
    ("CRATES", "cio", f"{_ALNUM}{{32}}"),
    ("CLOJARS", "CLOJARS_", f"{_ALNUM}{{60}}"),
    ("NUGET", "oy2", "[0-9a-z]{43}"),
    ("PACKAGIST", "packagist_", f"[a-z]{{3}}_{_ALNUM}{{60,90}}"),
    ("DOCKER", "dckr_pat_ dckr_oat_", f"{_WORD}{{27,40}}"),
    ("DEPOT", "depot_", f"[a-z]{{2,10}}_{_ALNUM}{{30,80}}"),
    ("OCTOPUS", "API-", "[0-9A-Z]{25,32}"),
    ("PREFECT", "pnu_ pnb_", f"{_ALNUM}{{36}}"),
    ("INFRACOST", "ico-", f"{_ALNUM}{{32}}"),
    ("YOUTRACK", "perm: perm-", rf"{_ALNUM}{{4,60}}={{0,2}}\.{_ALNUM}{{4,60}}={{0,2}}\.{_ALNUM}{{20,60}}"),
    ("LAUNCHDARKLY", "sdk- api- mob- rel-", _UUID),
    ("POSTMAN", "PMAK- PMAT-", f"{_HEX}{{24}}-{_HEX}{{34}}|{_ALNUM}{{26}}"),
    ("README", "rdme_", "[0-9a-z]{70,76}"),
    ("WAKATIME", "waka_", _UUID),
    # Observation.
    ("DYNATRACE", "dt0c01. dt0s01. dt0s16.", rf"{_ALNUM}{{8,24}}\.{_ALNUM}{{64}}"),
    ("NEWRELIC", "NRAK- NRII- NRRA- NRIQ- NRJS-", f"{_WORD}{{19,42}}"),
    ("GRAFANA", "glc_", f"{_BASE64}{{32,400}}={{0,3}}"),
    ("GRAFANA", "glsa_", f"{_ALNUM}{{32}}_{_HEX}{{8}}"),
    ("GRAFANA", "eyJrIjoi", f"{_ALNUM}{{60,400}}={{0,3}}"),
    ("HONEYCOMB", "hcaik_ hcamk_ hcxik_ hcxmk_ hcbik_ hcalk_", f"{_ALNUM}{{28,70}}"),
    ("SENTRY", "sntrys_", f"{_BASE64}{{40,600}}={{0,2}}(?:_{_BASE64}{{40,60}})?"),
    ("SENTRY", "sntryu_ sntryi_", f"{_HEX}{{64}}"),
    ("POSTHOG", "phx_ phs_", f"{_ALNUM}{{32,60}}"),
    # Payment and shops.
    ("STRIPE", "sk_live_ sk_test_ rk_live_ rk_test_ sk_prod_ rk_prod_", f"{_ALNUM}{{16,250}}"),
    ("STRIPE", "whsec_", f"{_BASE64}{{24,70}}={{0,2}}"),
    ("SQUARE", "sq0atp- sq0csp- sq0idp-", f"{_WORD}{{22,60}}"),
    ("SQUARE", "EAAA", f"{_WORD}{{60}}"),
    ("BRAINTREE", "access_token$", rf"(?:production|sandbox)\$[0-9a-z]{{16}}\${_HEX}{{32}}"),
    ("RAZORPAY", "rzp_live_ rzp_test_", f"{_ALNUM}{{14,24}}"),
    ("PADDLE", "pdl_live_ pdl_sdbx_ pdl_ntfset_", r"\w{30,90}"),
    ("FLUTTERWAVE", "FLWSECK- FLWSECK_TEST-", f"{_ALNUM}{{12,40}}(?:-X)?"),
    ("MOLLIE", "live_ test_", f"(?=[A-Za-z]{{0,40}}\\d){_ALNUM}{{30,40}}"),
    ("PLAID", "access-sandbox- access-development- access-production-", _UUID),
    ("POLAR", "polar_pat_ polar_oat_ polar_whs_", f"{_WORD}{{30,70}}"),
    ("SHOPIFY", "shpat_ shpca_ shppa_ shpss_ shptka_", f"{_HEX}{{32}}"),
    ("SHIPPO", "shippo_live_ shippo_test_", f"{_HEX}{{40}}"),
    ("EASYPOST", "EZAK EZTK", f"{_ALNUM}{{54}}"),
    ("DUFFEL", "duffel_live_ duffel_test_", r"[\w=-]{43}"),
    ("GOCARDLESS", "live_ sandbox_", f"(?=[a-z_-]{{0,40}}[0-9A-Z]){_WORD}{{40}}"),
    # Chats, mail and social networks.
    ("SLACK", "xoxb- xoxp- xoxa- xoxo- xoxr- xoxs- xoxe- xoxc- xoxd-", r"[\w%-]{10,400}"),
    ("SLACK", "xoxe.xox", r"[bp]-\d-\w{140,180}"),
    ("SLACK", "xapp-", rf"\d-[0-9A-Z]{{1,40}}-\d{{1,20}}-{_ALNUM}{{20,100}}"),
    ("SLACK", "hooks.slack.com/ hooks.slack-gov.com/", r"(?:services|workflows|triggers)/([\w/+]{30,90})"),
    ("DISCORD", "/webhooks/", r"(\d{15,22}/[\w-]{50,90})"),
    ("DISCORD", "MT Mj Mz ND NT Nj Nz OD OT", r"[\w-]{21,28}\.[\w-]{6}\.[\w-]{27,40}"),
    ("TEAMS", "office.com/webhook", r"(?:b2)?/([\w@/-]{80,300})"),
    ("WEBHOOK", "/hooks/catch/", r"(\d{5,10}/[0-9a-z]{6,12})"),
    ("WEBHOOK", "/hooks/", r"((?=[a-z]{0,25}\d)[0-9a-z]{26})"),
    ("WEBHOOK", "/hooks/", rf"{_HEX}{{24}}/({_ALNUM}{{30,60}})"),
    ("WEBHOOK", "/with/key/ /webhooks/incoming/", r"([\w-]{20,100})"),
    ("WEBHOOK", "/hook/ /webhook/ /webhook/send?key= hc-ping.com/", f"({_UUID})"),
    ("WEBHOOK", "events.pagerduty.com/integration/", f"({_HEX}{{32}})"),
    ("TWILIO", "SK", "[0-9a-f]{32}"),
    ("TWITCH", "oauth:", "([0-9a-z]{30})"),
    ("SENDGRID", "SG.", r"[\w-]{16,32}\.[\w-]{16,64}"),
    ("MAILGUN", "key-", "[0-9a-f]{32}"),
    ("BREVO", "xkeysib- xsmtpsib-", f"{_HEX}{{64}}-{_ALNUM}{{16}}"),
    ("MAILERSEND", "mlsn.", f"{_HEX}{{64}}"),
    ("RESEND", "re_", f"{_ALNUM}{{8}}_{_ALNUM}{{20,30}}"),
    ("KLAVIYO", "pk_", f"{_HEX}{{34}}"),
    ("ONESIGNAL", "os_v2_app_ os_v2_org_", "[0-9a-z]{50,120}"),
    ("FACEBOOK", "EAA", f"(?=[A-Za-z]{{0,60}}\\d){_ALNUM}{{80,400}}"),
    ("INSTAGRAM", "IGQV IGQW IGAA", f"{_WORD}{{60,250}}"),
    ("TWITTER", "AAAAAAAAAAAAAAAAAAAA", r"A{1,3}[\w%]{60,110}"),
    # Work.
    ("FIGMA", "figd_ figu_ figo_", f"{_WORD}{{36,60}}"),
    ("LINEAR", "lin_api_ lin_oauth_ lin_wh_", f"{_ALNUM}{{32,64}}"),
    ("NOTION", "ntn_ secret_", f"(?=[A-Za-z]{{0,60}}\\d){_ALNUM}{{43,50}}"),
    ("AIRTABLE", "pat", rf"{_ALNUM}{{14}}\.{_HEX}{{64}}"),
    ("CLICKUP", "pk_", r"\d{5,10}_[0-9A-Z]{32}"),
    ("TRELLO", "ATTA", f"{_HEX}{{64}}(?:{_HEX}{{8}})?"),
    ("CONTENTFUL", "CFPAT-", f"{_WORD}{{43}}"),
    ("TYPEFORM", "tfp_", r"[\w.=-]{40,60}"),
    ("HUBSPOT", "pat-na1- pat-na2- pat-eu1- pat-ap1-", _UUID),
    ("SALESFORCE", "00D", rf"{_ALNUM}{{12,15}}![\w.]{{80,160}}"),
    ("FRAMEIO", "fio-u-", r"[\w=-]{64}"),
    ("DROPBOX", "sl.", r"(?:u\.)?[\w=-]{100,1500}"),
    ("ADOBE", "p8e-", f"{_ALNUM}{{32}}"),
    ("MAPBOX", "sk.eyJ", r"[\w-]{40,200}\.[\w-]{20,40}"),
    ("APIFY", "apify_api_", f"{_ALNUM}{{30,50}}"),
    ("FORTYTWO", "s-s4t2ud- s-s4t2af-", f"{_HEX}{{64}}"),
    ("SETTLEMINT", "sm_aat_ sm_pat_ sm_sat_", f"{_ALNUM}{{16}}"),
    (
        "AUTHRESS",
        "sc_ ext_ scauth_ authress_",
        rf"{_ALNUM}{{5,30}}\.{_ALNUM}{{4,6}}\.acc[_-][0-9a-z-]{{10,32}}\.[\w/=+-]{{30,120}}",
    ),
    # Models and what is around them.
    ("ANTHROPIC", "sk-ant-", f"{_WORD}{{40,250}}"),
    ("OPENAI", "sk-proj- sk-svcacct- sk-admin- sk-None-", f"{_WORD}{{40,250}}"),
    ("OPENROUTER", "sk-or-v1-", f"{_HEX}{{64}}"),
    ("LANGFUSE", "sk-lf-", _UUID),
    ("APIKEY", "sk-", f"(?=[a-zA-Z_-]{{0,60}}\\d){_WORD}{{20,250}}"),
    ("ELEVENLABS", "sk_", f"{_HEX}{{48}}"),
    ("HUGGINGFACE", "hf_ api_org_", f"{_ALNUM}{{30,40}}"),
    ("REPLICATE", "r8_", f"{_ALNUM}{{37}}"),
    ("GROQ", "gsk_", f"{_ALNUM}{{40,60}}"),
    ("PERPLEXITY", "pplx-", f"{_ALNUM}{{40,60}}"),
    ("XAI", "xai-", f"{_ALNUM}{{70,90}}"),
    ("CEREBRAS", "csk-", f"{_ALNUM}{{40,60}}"),
    ("TOGETHER", "tgp_v1_", f"{_WORD}{{40,60}}"),
    ("FIREWORKS", "fw_", f"(?=[A-Za-z]{{0,60}}\\d){_ALNUM}{{22,32}}"),
    ("NVIDIA", "nvapi-", f"{_WORD}{{60,80}}"),
    ("JINA", "jina_", f"{_WORD}{{50,80}}"),
    ("PINECONE", "pcsk_", f"{_WORD}{{40,90}}"),
    ("LANGSMITH", "lsv2_pt_ lsv2_sk_", f"{_HEX}{{32}}_{_HEX}{{10}}"),
    ("VOYAGE", "pa-", f"(?=[A-Za-z_-]{{0,60}}\\d){_WORD}{{43}}"),
    ("TAVILY", "tvly-", f"{_WORD}{{32,60}}"),
    ("FIRECRAWL", "fc-", f"{_HEX}{{32}}"),
    ("EBOX", "e2b_", f"{_HEX}{{40}}"),
    ("RUNPOD", "rpa_", f"{_ALNUM}{{36,60}}"),
    ("WANDB", "wandb_v1_", f"{_WORD}{{60,100}}"),
    ("ANYSCALE", "esecret_", f"{_ALNUM}{{20,40}}"),
    ("CURSOR", "crsr_", f"{_HEX}{{64}}"),
    # Forms that no issuer owns.
    ("JWT", "eyJ", r"[\w-]{8,2000}+\.eyJ[\w-]{8,8000}+(?:\.[\w-]{8,2000})?"),
    ("JWT", "eyJ", r"[\w-]{8,2000}+\.[\w-]{0,1000}\.[\w-]{10,200}\.[\w-]{8,8000}\.[\w-]{16,60}"),
    ("HASH", r"$1$ $1\$", rf"\$?[\w./]{{1,8}}{_DOLLAR}[\w./]{{22}}"),
    ("HASH", "{SHA}", f"{_BASE64}{{27}}="),
    ("HASH", r"$2a$ $2b$ $2y$ $2a\$ $2b\$ $2y\$", rf"\$?\d\d{_DOLLAR}[\w./]{{53}}"),
    ("HASH", r"$5$ $6$ $y$ $gy$ $apr1$ $5\$ $6\$ $y\$ $apr1\$", r"[\w./=,$\\-]{20,160}"),
    ("HASH", "$7$ $argon2 $pbkdf2 $scrypt", r"[\w./=,$+\\-]{30,300}"),
    ("HASH", "scrypt:", r"\d{1,9}:\d{1,3}:\d{1,3}\${1,2}\w{1,64}\${1,2}[0-9a-f]{32,256}"),
    ("HASH", "pbkdf2 {SSHA} {CRYPT}", r"[\w$+/=:.\\]{20,200}"),
)  # fmt: skip

# Kind, lead, how far before the lead the secret begins at most, and the whole expression.
_AROUND = (
    ("AZURE", "Q~", 4, r"[\w~.]{3}\dQ~[\w~.-]{31,34}"),
    ("AZURE", "AZDO", 76, f"{_ALNUM}{{76}}AZDO{_ALNUM}{{4}}"),
    ("AZURE", "JQQJ99", 52, f"{_ALNUM}{{52}}JQQJ99{_ALNUM}{{20,30}}"),
    ("TERRAFORM", ".atlasv1.", 14, rf"{_ALNUM}{{14}}\.atlasv1\.[\w=-]{{60,70}}"),
    ("MAXMIND", "_mmk", 36, f"{_ALNUM}{{6}}_{_ALNUM}{{29}}_mmk"),
    ("MAILCHIMP", "-us", 32, "[0-9a-f]{32}-us\\d{1,2}"),
    ("TELEGRAM", ":AA", 10, r"\d{8,10}:AA[\w-]{33}"),
    ("FIREBASE", ":APA91b", 30, r"[\w-]{11,30}:APA91b[\w-]{100,180}"),
    ("RAPIDAPI", "jsn", 43, "[0-9a-z]{10}msh[0-9a-z]{20,30}jsn[0-9a-z]{10,14}"),
)


def _is_literal(word: str) -> bool:
    return len(word) > 2 and values.is_literal(word)


def _stated(value: str, form: Form) -> bool:
    is_long = len(value) >= 8 and values.is_said(value)
    return is_long and values.is_password(value, form, quoted=False)


def _in_address(value: str, _form: Form) -> bool:
    return _is_literal(value.strip("[]()"))


def _login(value: str, _form: Form) -> bool:
    """Accept Basic credentials: base64 of a name, a colon and a password."""
    with contextlib.suppress(ValueError):
        plain = base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
        return _is_literal(plain.partition(b":")[2].decode("ascii"))
    return False


def _aws(value: str, form: Form) -> bool:
    return values.is_token(value, form) and not (value.islower() or value.isupper())


def _authorization(value: str, form: Form) -> bool:
    return _login(value, form) or values.is_token(value, form)


_QUOTED = r"""["']([^"'\n]{4,200})["']"""
_VALUE = r"""["']?([^\s"'`$<{/-][^\s"'`<]{2,200})"""

_ARGUMENT = r"""(?:["'][^"'\n]{1,100}["']|[$\w.>-]{1,60})\s{0,3},\s{0,30}"""
_OPTIONS = r"[^\n|;&]{0,200}?"


def _near(
    kind: str,
    leads: str,
    expression: str,
    check: Callable[[str, Form], bool] = values.is_password,
    back: int = 0,
) -> Pattern:
    """Return a rule for lower-case text, matched without regard to case; `leads` are divided by `|`."""
    return Pattern(kind, tuple(leads.split("|")), f"(?i:{expression})", back, check)


CONTEXT = (
    _near("PASSWORD", "://", r"""://[^\s:/@"'<>`]{0,100}:([^\s/"'<>`]{1,200})@[\w.\[$%{-]""", _in_address),
    _near("TOKEN", "://", r"://([\w.~-]{20,200})@(?!\w{1,20}\.ingest|sentry)", values.is_token),
    _near("PASSWORD", "@tcp(|@unix(", r"[\w.-]{1,60}:([^\s\"'@/]{3,100})@(?:tcp|unix)\(", _in_address, 165),
    _near("TOKEN", "bearer ", r"bearer +([\w.~+/=-]{8,4000})", values.is_token),
    _near("PASSWORD", "basic ", r"basic +([0-9A-Za-z+/]{8,400}={0,2})", _login),
    _near("TOKEN", "authorization",
        r"authorization[\"'\])]{0,3}\s{0,3}[:=,]\s{0,3}[\"'`]?(?:[a-z0-9-]{3,12} +)?([\w.~+/=:-]{8,4000})",
        _authorization),
    _near("TOKEN", "sess|sid=", r"s(?:ess)?(?:ion)?_?(?:id)?=([\w.%+/=:-]{16,4000})", values.is_token),
    _near("TOKEN", "sig=", r"(?<=[?&;])sig=([\w%+/=-]{20,200})", any_value),
    _near("KEY", '"d"', r'"d"\s{0,9}:\s{0,9}"([\w-]{20,800})"', any_value),
    _near("PASSWORD", "identified ", rf"identified (?:with \S{{1,40}} )?by (?:password )?{_QUOTED}"),
    _near("PASSWORD", "securestring ", rf"securestring +(?:-string +)?{_QUOTED}"),
    _near("PASSWORD", "password '", rf"password +{_QUOTED}"),
    _near("SECRET", "pragma key|pgp_sym_", rf"(?:pragma key *= *|pgp_sym_\w{{7,9}}\({_ARGUMENT}){_QUOTED}"),
    _near("PASSWORD", ".tochararray", r"\"([^\"\n]{4,200})\"\.tochararray", values.is_password, 205),
    _near("PASSWORD", " -u|--user", rf"(?: -u|--user)[ =]{{0,2}}[\"']?[\w@.%+-]{{1,80}}:{_VALUE}"),
    _near("PASSWORD", "redis-cli", rf"redis-cli\b{_OPTIONS} -a +{_VALUE}"),
    _near("PASSWORD", "mysql|mariadb", rf"\b(?:mysql|mariadb)[a-z]{{0,6}}\b{_OPTIONS}[ \"']-p{_VALUE}"),
    _near("PASSWORD",
        "mongo|sqlcmd|cqlsh|influx|sshpass|login|zip|7z|useradd|usermod|ipmitool|mosquitto|twine|rdesktop",
        rf"(?:mongo[a-z]{{0,8}}|sqlcmd|cqlsh|influx|sshpass|login|zip|7z[ar]?|user(?:add|mod)|ipmitool"
        rf"|mosquitto_\w{{3}}|twine|rdesktop)\b{_OPTIONS}[ \"']-p[ =\"',]{{0,5}}{_VALUE}"),
    _near("PASSWORD", "ldap|ssh-keygen|openssl enc",
        rf"(?:ldap\w{{3,8}}\b{_OPTIONS} -w|ssh-keygen{_OPTIONS} -[np]|openssl enc{_OPTIONS} -k) +{_VALUE}"),
    _near("PASSWORD", "stats auth|login=|rabbitmqctl|sqlplus|on >|community|server key|wpa-psk",
        r"(?:(?:stats auth +|login=)[\w.@-]{1,60}:|rabbitmqctl +(?:add_user|change_password) +\S{1,60} +|on >"
        rf"|sqlplus +(?:-\w+ +)?[\w.-]{{1,60}}/|(?:community|server key|wpa-psk ascii) +(?:\d +)?){_VALUE}",
        _stated),
    _near("PASSWORD", "htpasswd", rf"htpasswd +-[a-z]{{0,5}}b[a-z]{{0,5}} (?:\S{{1,100}} ){{1,2}}{_VALUE}"),
    _near("SECRET", "--from-literal", rf"--from-literal[= ][\"']?[\w.-]{{1,80}}={_VALUE}"),
    _near("PASSWORD", "echo |printf ",
        rf"(?:echo|printf)(?: -n| [\"']%s(?:\\n)?[\"'])? +[\"']?(?:[\w.-]{{1,40}}:)?{_VALUE}[\"']? *"
        r"(?:\|[^\n]{0,99}?(?:passwd|--password-stdin|sudo -s)|>>? *\S{0,80}(?:passw|secret|token|[._]key))"),
    _near("HASH", ":::", r"[0-9a-f]{32}:([0-9a-f]{32}):::", any_value, 80),
    _near("PASSWORD", "jdbc:oracle", r"jdbc:oracle:\w{2,5}:[\w.-]{1,60}/([^\s@\"'/]{3,100})@", _in_address),
    _near("AWS", "akia", r"akia[a-z2-7]{16}\b[\s\S]{1,120}?(?<![\w/+])([\w/+]{40})(?![\w/+=])", _aws),
    _near("PASSWORD", "login|auth|cred|sign|set_pass|setpass|userpass|create_user|ftp(",
        rf"(?:login|auth[a-z]{{0,9}}|cred[a-z]{{0,9}}|sign_?in|set_?password|userpassword|create_user|ftp)=?"
        rf"\(\s{{0,30}}(?:{_ARGUMENT}){{1,2}}(?:some\()?{_QUOTED}"),
    _near("PASSWORD", "connect|pdo(",
        rf"[a-z]{{3,10}}\(\s{{0,9}}{_ARGUMENT}(?:\d{{2,5}}, {{0,3}})?{_ARGUMENT}{_QUOTED}"),
    _near("SECRET", "hmac|jwt.|fernet(|wifi.begin(|cookieparser(",
        rf"(?:hmac(?:\.new)?|jwt\.\w{{4,6}}|fernet|wifi\.begin|cookieparser)\(\s{{0,9}}(?:{_ARGUMENT})?"
        rf"b?{_QUOTED}"),
    _near("SEED", "mnemonic|seed|recovery",
        r"[a-z]{4,8}[\w -]{0,20}[\"'`]?\s{0,3}(?:is|=|:)\s{0,3}[\"'`]?((?:[a-z]{3,8} ){11,23}[a-z]{3,8})\b",
        any_value),
)  # fmt: skip
# The same, for sentences only.
STATED = (
    _near("PASSWORD", "password|passphrase",
        r"(?:^|\s)[\"'`]?([^\s\"'`]{6,80})[\"'`]? [ia]s (?:(?:the|my|our) )?(?:[\w-]{1,20} ){0,2}pass\w{4,6}",
        _stated, 100),
    _near("PASSWORD", "log in|login|sign in|cred|user |account|zugang",
        rf"[a-z ]{{4,12}}\b[^\n]{{0,60}}?[\s\"'`(][\w.@+-]{{2,40}} ?[/:] ?{_VALUE}", _stated),
)  # fmt: skip


def _after(kind: str, leads: str, rest: str) -> Pattern:
    words = tuple(leads.split())
    return Pattern(kind, words, f"(?:{'|'.join(map(re.escape, words))})(?:{rest})(?![0-9A-Za-z])")


RULES = (
    *(_after(*row) for row in _AFTER),
    *(
        Pattern(kind, (lead,), f"(?:{whole})(?![0-9A-Za-z])", back)
        for kind, lead, back, whole in _AROUND
    ),
)
