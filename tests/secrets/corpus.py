"""Documents with planted secrets, and look-alikes, made from a seed: no secret is stored here.

Two halves, by kind and by syntax: rules may be tuned on half 0 only, half 1 judges them.
"""

import base64
import random
import re
import string
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

SEED = 18
_ALPHABETS = {
    "A": string.ascii_letters + string.digits,
    "a": string.ascii_lowercase + string.digits,
    "U": string.ascii_uppercase + string.digits,
    "L": string.ascii_letters,
    "d": string.digits,
    "h": "0123456789abcdef",
    "w": string.ascii_letters + string.digits + "-_",
    "b": string.ascii_letters + string.digits + "+/",
    "B": "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
    "s": string.ascii_letters + string.digits + "!@#%^*+=?",  # as password managers do
    "q": "qpzry9x8gf2tvdw0s3jn54khce6mua7l".upper(),
}

# Known kinds: `[A36]` is 36 characters of an alphabet, `[uuid]` and `[word]` what they say.
KNOWN = """
AKIA[B16] ASIA[B16] ABSK[b132] AIza[w35] GOCSPX-[w28] ya29.[w120] 1//0[w90] LTAI[A20] AKID[A32]
AQVN[w36] dop_v1_[h64] doo_v1_[h64] dor_v1_[h64] SCW[U17] tk-us-[w48] fo1_[w43] fm2_[b200]
HRKU-AA[w58] rnd_[A32] nfp_[A36] v1.0-[h24]-[h146] dapi[h32] dapi[h32]-2 pscale_tkn_[w43]
pscale_oauth_[w43] pscale_pw_[w43] napi_[a64] sbp_[h40] sb_secret_[w31] mdb_sa_sk_[w40] 4b1d[A38]
cflt[b60] tskey-auth-[A17]-[A32] tskey-api-[A17]-[A32] sha256~[w43] pul-[h40] dnkey-[a26]-[a52]
hvs.[w95] hvb.[w150] dp.pt.[A43] dp.st.dev.[A43] st.[h24].[h32].[h32] ops_eyJ[b300]
A3-[U6]-[U6]-[U5]-[U5]-[U5]-[U5] AGE-SECRET-KEY-1[q58] ghp_[A36] gho_[A36] ghu_[A36] ghs_[A36]
ghr_[A36] github_pat_[A22]_[A59] glpat-[w20] glpat-[w27].01.[a9] gldt-[w20] glrt-[w20] glptt-[h40]
glft-[w20] glagent-[w50] gloas-[h64] glcbt-[A2]_[w20] ATBB[A32] ATATT3[w186] CCIPAT_[A22]_[h40]
bkua_[h40] pat.[w22].[A24].[A20] sgp_[h40] sgp_[h16]_[h40] squ_[h40] sqp_[h40] snyk_uat.[h8].[w60]
AKCp[A69] cmVmd[A59] npm_[A36] pypi-AgEIcHlwaS5vcmc[w120] rubygems_[h48] cio[A32] CLOJARS_[h60]
oy2[a43] packagist_ack_[h68] dckr_pat_[w27] depot_project_[h50] API-[U26] pnu_[A36] ico-[A32]
perm:[A12].[A12].[A30] sdk-[uuid] mob-[uuid] PMAK-[h24]-[h34] rdme_[a70] waka_[uuid]
dt0c01.[U24].[U64] NRAK-[U27] NRII-[w32] glc_[b90] glsa_[A32]_[h8] hcaik_[a58] sntrys_[b120]_[b43]
sntryu_[h64] phx_[A43] sk_live_[A24] sk_test_[A99] rk_live_[A24] whsec_[A32] sq0atp-[w22]
sq0csp-[w43] access_token$production$[a16]$[h32] rzp_live_[A14] pdl_live_apikey_[a26]_[A22]_[A3]
FLWSECK-[h32]-X live_[A30] access-production-[uuid] polar_oat_[w43] shpat_[h32] shpss_[h32]
shpca_[h32] shppa_[h32] shippo_live_[h40] EZAK[A54] duffel_live_[w43] xoxb-[d12]-[d12]-[A24]
xoxp-[d12]-[d12]-[d12]-[h32] xoxe.xoxp-1-[A163] xapp-1-[U11]-[d13]-[h64]
https://hooks.slack.com/services/<T[U8]/B[U10]/[A24]> https://discord.com/api/webhooks/<[d18]/[w68]>
MT[w22].[w6].[w27] Nj[w22].[w6].[w38] SK[h32] SG.[w22].[w43] key-[h32] xkeysib-[h64]-[A16]
mlsn.[h64] re_[A8]_[A24] pk_[h34] os_v2_app_[a100] EAAC[A150] IGQV[w140] AAAAAAAAAAAAAAAAAAAAAA[A86]
figd_[w40] lin_api_[A40] lin_oauth_[h64] ntn_[d11][A35] pat[A14].[h64] pk_[d8]_[U32] ATTA[h64]
CFPAT-[w43] tfp_[w59] pat-na1-[uuid] 00D[A15]![A96] fio-u-[w64] sl.[w135] p8e-[a32]
sk.eyJ[w90].[w22] apify_api_[A36] s-s4t2ud-[h64] sm_pat_[A16] sk-ant-api03-[w93]AA
sk-ant-oat01-[w93]AA sk-ant-admin01-[w93]AA sk-proj-[w74]T3BlbkFJ[w74] sk-[A20]T3BlbkFJ[A20]
sk-svcacct-[w58]T3BlbkFJ[w58] sk-or-v1-[h64] sk-lf-[uuid] sk-[h32] sk_[h48] hf_[L34] api_org_[L34]
r8_[A37] gsk_[A52] pplx-[A48] xai-[A80] csk-[a48] tgp_v1_[w43] fw_[A24] nvapi-[w64] jina_[h32][w33]
pcsk_[A6]_[A60] lsv2_pt_[h32]_[h10] pa-[w43] tvly-[A32] fc-[h32] e2b_[h40] rpa_[A44] esecret_[a26]
crsr_[h64] eyJ[w34].eyJ[w90].[w43] $2b$12$[A53] $6$[A16]$[A86]
$argon2id$v=19$m=65536,t=3,p=4$[A22]$[A43] [A3]8Q~[A34] [A76]AZDO[A4] [A52]JQQJ99[A24]
[A14].atlasv1.[w67] [A6]_[A29]_mmk [h32]-us12 [d10]:AA[w33] [w11]:APA91b[w134]
[a10]msh[a15]p1[a6]jsn[a12]
"""

# What a secret of a known kind is in: the path, and the text around it.
CARRIERS = (
    ("app.py", "import os\n\nCLIENT = connect(\n    'eu-1', '{}'\n)\n"),
    ("config.ts", 'export const it = {{ region: "eu", value: "{}" }};\n'),
    ("main.go", 'func main() {{\n\tc := client.New("{}")\n}}\n'),
    (".env", "REGION=eu-1\nTHING={}\nDEBUG=0\n"),
    ("deploy.yml", "jobs:\n  - env:\n      THING: {}\n"),
    ("settings.json", '{{"region": "eu-1", "thing": "{}", "n": 3}}\n'),
    ("notes.md", "We connect with `{}`, which Ana made.\n"),
    ("", "the server says: 401 for {} (expired?)\n"),
    ("build.log", "\x1b[31m{}\x1b[0m was refused\n"),
    ("a.sh", "curl -H 'X-Thing: {}' https://api.internal/v1\n"),
    ("strings.json", '{{"log": "first line\\n{}\\nlast line"}}\n'),
    ("values.xml", "<thing>{}</thing>\n"),
)

# By context: path, text, and of which sort its secret is.
CONTEXT = (
    ("settings.py", 'DATABASES = {{"default": {{"USER": "app", "PASSWORD": "{}"}}}}\n', "pw"),
    ("db.py", "conn = psycopg2.connect(host='db', user='app', password='{}')\n", "pw"),
    ("app.py", 'app.config["SECRET_KEY"] = "{}"\n', "token"),
    ("client.py", 'API_KEY: str = "{}"\n', "token"),
    ("client.py", "headers = {{'Authorization': 'Bearer {}'}}\n", "token"),
    ("client.py", "token = os.environ.get('APP_TOKEN', '{}')\n", "token"),
    ("client.py", 'if password == "{}":\n    grant()\n', "pw"),
    ("client.py", "requests.get(url, auth=('admin', '{}'))\n", "pw"),
    ("client.py", 'SMTP_PASSWORD = """{}"""\n', "pw"),
    ("client.py", "session.headers.update({{'X-Api-Key': '{}'}})\n", "token"),
    ("api.js", "const apiKey = '{}';\n", "token"),
    ("api.js", "module.exports = {{ clientSecret: `{}` }};\n", "token"),
    ("api.ts", "  private readonly password: string = '{}';\n", "pw"),
    ("api.ts", "const secret = process.env.JWT_SECRET || '{}';\n", "token"),
    ("api.ts", 'const secret = process.env.JWT_SECRET ?? "{}";\n', "token"),
    ("Main.java", 'props.setProperty("db.password", "{}");\n', "pw"),
    ("Main.java", 'private static final String ACCESS_TOKEN = "{}";\n', "token"),
    ("Main.java", '    builder.password("{}");\n', "pw"),
    ("Main.kt", 'val dbPassword = "{}"\n', "pw"),
    ("main.go", 'password := "{}"\n', "pw"),
    ("main.go", 'const apiSecret string = "{}"\n', "token"),
    ("main.go", 'cfg := Config{{AuthToken: "{}"}}\n', "token"),
    ("main.rs", 'let password: &str = "{}";\n', "pw"),
    ("main.rs", 'const API_TOKEN: &\'static str = "{}";\n', "token"),
    ("Program.cs", 'var password = @"{}";\n', "pw"),
    ("Program.cs", 'var c = new SqlConnection("Server=db;User Id=sa;Password={};Encrypt=true");\n', "pwurl"),
    ("app.rb", "  config.secret_key_base = '{}'\n", "hex"),
    ("app.rb", '  :password => "{}",\n', "pw"),
    ("config.php", "define('DB_PASSWORD', '{}');\n", "pw"),
    ("config.php", "$config['smtp_pass'] = '{}';\n", "pw"),
    ("config.php", "'password' => '{}',\n", "pw"),
    ("App.swift", 'let clientSecret = "{}"\n', "token"),
    ("Base.scala", 'val signingKey = "{}"\n', "b64"),
    ("setup.sql", "CREATE USER 'app'@'%' IDENTIFIED BY '{}';\n", "pw"),
    ("setup.sql", "ALTER ROLE app WITH LOGIN PASSWORD '{}';\n", "pw"),
    ("main.c", '#define WIFI_PASSWORD "{}"\n', "pw"),
    ("main.c", 'static const char *api_key = "{}";\n', "token"),
    ("main.tf", '  master_password = "{}"\n', "pw"),
    ("prod.tfvars", 'db_password = "{}"\n', "pw"),
    ("build.gradle", '    storePassword "{}"\n', "pw"),
    ("deploy.ps1", '$Password = "{}"\n', "pw"),
    (".env", "DB_HOST=db\nDB_PASSWORD={}\nPORT=1\n", "pw"),
    (".env", 'export JWT_SECRET="{}"\n', "token"),
    (".env", "STRIPE_KEY={}\n", "token"),
    (".env", "APP_KEY=base64:{}\n", "b64"),
    (".env.local", "ADMIN_PASS='{}' # staging\n", "pw"),
    ("docker-compose.yml", "    environment:\n      POSTGRES_PASSWORD: {}\n", "pwyaml"),
    ("docker-compose.yml", "    environment:\n      - MYSQL_ROOT_PASSWORD={}\n", "pwyaml"),
    ("values.yaml", 'auth:\n  password: "{}"\n', "pw"),
    ("values.yaml", "auth:\n  existing: null\n  adminPassword: '{}'  # rotate\n", "pw"),
    ("secrets.yml", "production:\n  secret_key_base: {}\n", "hex"),
    ("secret.yaml", "apiVersion: v1\nkind: Secret\ndata:\n  thing: {}\n", "b64"),
    ("playbook.yml", "- hosts: all\n  vars:\n    ansible_become_pass: {}\n", "pwyaml"),
    ("ci.yml", "        with:\n          access-token: {}\n", "token"),
    ("config.toml", 'token = "{}"\n', "token"),
    ("config.toml", '[database]\npassword = "{}"\n', "pw"),
    ("config.ini", "[mail]\nuser = me\npassword = {}\n", "pwyaml"),
    ("app.properties", "spring.datasource.password={}\n", "pwyaml"),
    ("app.properties", "jwt.secret={}\n", "token"),
    ("redis.conf", "port 6379\nrequirepass {}\n", "pwyaml"),
    ("config.json", '{{\n  "user": "a",\n  "password": "{}"\n}}\n', "pw"),
    ("config.json", '{{"aws": {{"secretAccessKey": "{}"}}}}\n', "b64"),
    ("config.json", '{{"client_secret":"{}","redirect":1}}\n', "token"),
    ("dump.json", '{{"body": "{{\\"password\\": \\"{}\\", \\"user\\": 1}}"}}\n', "pwurl"),
    ("settings.xml", "<server><id>x</id><password>{}</password></server>\n", "pwurl"),
    ("web.config", '<add key="SmtpPassword" value="{}" />\n', "pwurl"),
    ("web.config", '<add name="d" connectionString="Server=x;Uid=y;Pwd={};" />\n', "pwurl"),
    ("Info.plist", "<key>apiToken</key>\n<string>{}</string>\n", "token"),
    ("bean.xml", '<property name="password" value="{}"/>\n', "pwurl"),
    ("run.sh", "export PGPASSWORD={}\n", "pwurl"),
    ("run.sh", "PGPASSWORD='{}' psql -h db\n", "pw"),
    ("run.sh", "tool login --username a --password {}\n", "pwurl"),
    ("run.sh", "tool --token={} sync\n", "token"),
    ("run.sh", "curl -u admin:{} https://internal/x\n", "pwurl"),
    ("run.sh", "mysql -h db -u root -p{} shop\n", "pwurl"),
    ("run.sh", "sshpass -p '{}' ssh me@host\n", "pw"),
    ("run.sh", "docker login -u me -p {} registry.internal\n", "pwurl"),
    ("run.sh", "redis-cli -h r -a {} ping\n", "pwurl"),
    ("run.sh", "curl -H 'Authorization: Bearer {}' https://internal\n", "token"),
    ("Dockerfile", "FROM x\nENV DB_PASSWORD={}\n", "pwurl"),
    ("Dockerfile", "FROM x\nARG NPM_TOKEN={}\n", "token"),
    ("Dockerfile", "FROM x\nENV API_TOKEN {}\n", "token"),
    ("app.py", 'engine = create_engine("postgresql://app:{}@db:5432/shop")\n', "pwurl"),
    (".env", "REDIS_URL=redis://:{}@cache:6379/0\n", "pwurl"),
    ("app.js", "mongoose.connect('mongodb+srv://app:{}@c0.mongodb.net/shop');\n", "pwurl"),
    ("notes.md", "    git clone https://bob:{}@git.internal/x.git\n", "pwurl"),
    ("out.log", "amqp://guest2:{}@rabbit:5672/vhost refused\n", "pwurl"),
    ("out.log", "GET /v1/items?page=2&access_token={}&x=1 HTTP/1.1\n", "token"),
    ("out.log", "Authorization: Basic {}\n", "basic"),
    ("out.log", "Cookie: theme=dark; sessionid={}; lang=en\n", "token"),
    ("out.log", "Set-Cookie: connect.sid={}; Path=/; HttpOnly\n", "token"),
    ("out.log", "> authorization: Bearer {}\n", "token"),
    ("storage.env", "CONN=DefaultEndpointsProtocol=https;AccountName=x;AccountKey={}==\n", "b86"),
    ("link.txt", "https://x.blob.core.windows.net/c/f?sv=2022&sig={}%3D&se=2025\n", "b43"),
    ("jwk.json", '{{"kty": "EC", "x": "a", "d": "{}"}}\n', "url43"),
    (".netrc", "machine host.internal login me password {}\n", "pwurl"),
    (".pgpass", "db:5432:shop:app:{}\n", "pwpg"),
    (".npmrc", "//registry.internal/:_authToken={}\n", "uuid"),
    (".pypirc", "[pypi]\nusername = me\npassword = {}\n", "pwyaml"),
    (".htpasswd", "admin:$apr1$[A8]$[A22]\n", "apr"),
    (".docker/config.json", '{{"auths": {{"r.internal": {{"auth": "{}"}}}}}}\n', "basic"),
    (".kube/config", "users:\n- name: a\n  user:\n    token: {}\n", "token"),
    (".git/config", '[remote "origin"]\n	url = https://me:{}@git.internal/x.git\n', "pwurl"),
    (".git-credentials", "https://me:{}@git.internal\n", "pwurl"),
    (".aws/credentials", "[default]\naws_secret_access_key = {}\n", "b64"),
    (".my.cnf", "[client]\npassword={}\n", "pwyaml"),
    ("wg0.conf", "[Interface]\nPrivateKey = {}=\n", "b43"),
    ("config/master.key", "{}\n", "hex"),
    (".vault-token", "{}\n", "token"),
    ("settings.py", "EMAIL_HOST_PASSWORD = '{}'\n", "pw"),
    ("settings.py", "AWS_SECRET_ACCESS_KEY = '{}'\n", "b64"),
    ("conn.py", 'db = pymysql.connect("db", "root", "{}", "shop")\n', "pw"),
    ("conn.py", "redis.Redis(host='r', password=b'{}')\n", "pw"),
    ("conn.py", "params = dict(user='x', passwd='{}')\n", "pw"),
    ("conn.py", "client = boto3.client('s3', aws_secret_access_key='{}')\n", "b64"),
    ("conn.py", "openai.api_key = '{}'\n", "token"),
    ("conn.py", "# old password: {}\n", "pw"),
    ("conn.py", "smtp.login('me@firm.test', '{}')\n", "pw"),
    ("conn.py", "cmd = 'curl -H \"Authorization: Bearer {}\"'\n", "token"),
    ("conn.py", 'data = {{"grant_type": "password", "username": "u", "password": "{}"}}\n', "pw"),
    ("page.test.ts", "await page.fill('#password', '{}');\n", "pw"),
    ("fire.ts", "const config = {{ apiKey: \"{}\", authDomain: 'x' }};\n", "token"),
    ("fire.ts", "headers: {{ Authorization: `Bearer {}` }},\n", "token"),
    ("fire.js", "var cfg = {{user: 'a', pass: '{}'}};\n", "pw"),
    ("app.jsx", '<Client apiKey="{}" />\n', "token"),
    ("Dao.java", 'DriverManager.getConnection("jdbc:mysql://db/shop?user=app&password={}");\n', "pwurl"),
    ("Dao.java", 'DriverManager.getConnection(url, "app", "{}");\n', "pw"),
    ("Dao.java", 'new UsernamePasswordCredentials("bob", "{}")\n', "pw"),
    ("Dao.java", 'config.put("client.secret", "{}");\n', "token"),
    ("application.yml", "spring:\n  datasource:\n    password: {}\n", "pwyaml"),
    ("application.yml", '    secret-key: "{}"\n', "token"),
    ("application.yml", "    url: jdbc:postgresql://db/x?user=a&password={}\n", "pwurl"),
    (".travis.yml", "env:\n  global:\n    - API_TOKEN={}\n", "token"),
    ("ci.yml", "    - run: deploy --api-key {}\n", "token"),
    ("pod.yml", '    - name: DB_PASSWORD\n      value: "{}"\n', "pw"),
    ("task.json", '{{"name": "DB_PASSWORD", "value": "{}"}}\n', "pw"),
    ("parameters.json", '{{"ParameterKey": "DbPassword", "ParameterValue": "{}"}}\n', "pw"),
    ("app.toml", "[api]\napi_key = '{}'\n", "token"),
    ("pip.conf", "[global]\nindex-url = https://me:{}@pypi.internal/simple\n", "pwurl"),
    ("nginx.conf", 'proxy_set_header Authorization "Basic {}";\n', "basic"),
    ("odbc.ini", "PWD={}\n", "pwyaml"),
    ("my.ini", 'db_pass = "{}"\n', "pw"),
    ("server.xml", '<Connector keystorePass="{}" port="1"/>\n', "pwurl"),
    ("context.xml", '<Resource username="a" password="{}"/>\n', "pwurl"),
    ("pom.xml", "<properties><db.password>{}</db.password></properties>\n", "pwurl"),
    ("appsettings.json", '{{"ConnectionStrings": {{"Db": "Server=x;User=y;Password={};"}}}}\n', "pwurl"),
    ("appsettings.json", '{{"Jwt": {{"Key": "{}"}}}}\n', "b64"),
    ("up.sh", "export API_KEY='{}'\n", "token"),
    ("up.sh", "set -x; TOKEN={} ./run\n", "token"),
    ("up.sh", 'wget --header="PRIVATE-TOKEN: {}" https://x\n', "token"),
    ("up.sh", "aws configure set aws_secret_access_key {}\n", "b64"),
    ("up.sh", 'psql "host=db user=app password={}"\n', "pwurl"),
    ("up.sh", "kubectl create secret generic s --from-literal=password={}\n", "pwurl"),
    ("up.sh", "openssl enc -aes-256-cbc -pass pass:{}\n", "pwurl"),
    ("up.sh", "curl https://x.internal/?api_key={}\n", "token"),
    ("up.bat", "set DB_PASSWORD={}\n", "pwurl"),
    ("up.ps1", "$secret = ConvertTo-SecureString '{}' -AsPlainText\n", "pw"),
    ("vars.tf", 'variable "db_password" {{\n  default = "{}"\n}}\n', "pw"),
    ("vars.tf", '  secret_key = "{}"\n', "b64"),
    ("pay.rb", "Stripe.api_key = '{}'\n", "token"),
    ("database.yml", "production:\n  password: {}\n", "pwyaml"),
    ("db.php", '$dbpass = "{}";\n', "pw"),
    ("db.php", "$db = new PDO('mysql:host=db', 'app', '{}');\n", "pw"),
    ("env.go", 'os.Setenv("API_TOKEN", "{}")\n', "token"),
    ("env.go", 'db, err := sql.Open("mysql", "app:{}@tcp(db:3306)/shop")\n', "pwurl"),
    ("http.rs", '    .bearer_auth("{}")\n', "token"),
    ("prod.exs", '  password: "{}",\n', "pw"),
    ("Keys.kt", 'const val API_SECRET = "{}"\n', "token"),
    ("keys.dart", "final String apiKey = '{}';\n", "token"),
    ("Keys.cs", 'public const string ApiKey = "{}";\n', "token"),
    ("rights.sql", "SET PASSWORD FOR 'a'@'h' = '{}';\n", "pw"),
    ("a.ipynb", '  "source": ["api_key = \\"{}\\"\\n"]\n', "token"),
    ("x.log", "password={} rejected\n", "pwurl"),
    ("x.log", '{{"level":"info","access_token":"{}"}}\n', "token"),
    ("x.log", "X-Auth-Token: {}\n", "token"),
    ("x.log", "Proxy-Authorization: Basic {}\n", "basic"),
    ("x.har", '{{"name": "Authorization", "value": "Bearer {}"}}\n', "token"),
    (".env", "SECRET={}\n", "token"),
    (".env", "SENTRY_AUTH_TOKEN={}\n", "token"),
    (".env", "DATABASE_URL=mysql://root:{}@127.0.0.1/x\n", "pwurl"),
    (".env", 'MAIL_PASSWORD="{}"\n', "pw"),
    (".env", "OPENAI_KEY={}\n", "token"),
    (".yarnrc.yml", 'npmAuthToken: "{}"\n', "token"),
    (".cargo/credentials.toml", '[registry]\ntoken = "{}"\n', "token"),
    ("rclone.conf", "[r]\npass = {}\n", "pwyaml"),
    ("wp-config.php", "define( 'AUTH_KEY', '{}' );\n", "token"),
    ("sites.xml", '<Pass encoding="base64">{}</Pass>\n', "b64"),
    (".gem/credentials", ":rubygems_api_key: {}\n", "token"),
    ("kubeconfig", "    client-key-data: {}\n", "b64"),
    ("mail.py", "server.starttls(); server.login(user, '{}')\n", "pw"),
    ("cfg.py", "class Config:\n    db_pw: str = '{}'\n", "pw"),
    ("cfg.py", 'os.environ["SERVICE_TOKEN"] = "{}"\n', "token"),
    ("cfg.py", 'TOKENS = {{"prod_token": "{}"}}\n', "token"),
    ("cfg.py", 'def connect(user="root", password="{}"):\n', "pw"),
    ("cfg.py", 'sys.argv = ["x", "--password", "{}"]\n', "pw"),
    ("db.ts", "new Pool({{ user: 'app', host: 'db', password: '{}', port: 1 }});\n", "pw"),
    ("db.ts", "const url = `https://api.internal/v1?apikey={}`;\n", "token"),
    ("App.java", 'spec.header("X-API-KEY", "{}");\n', "token"),
    ("App.java", 'char[] passphrase = "{}".toCharArray();\n', "pw"),
    ("App.java", '@Value("${{jwt.secret:{}}}")\n', "token"),
    ("app.go", 'req.SetBasicAuth("admin", "{}")\n', "pw"),
    ("app.go", 'req.Header.Set("Authorization", "Bearer {}")\n', "token"),
    ("app.rs", 'std::env::set_var("API_SECRET", "{}");\n', "token"),
    ("app.php", 'putenv("DB_PASSWORD={}");\n', "pwurl"),
    ("app.php", "$this->apiToken = '{}';\n", "token"),
    ("App.cs", 'client.Credentials = new NetworkCredential("u", "{}");\n', "pw"),
    ("App.cs", 'options.ClientSecret = "{}";\n', "token"),
    ("hosts.ini", "web1 ansible_host=h ansible_ssh_pass={}\n", "pwurl"),
    ("compose.yaml", "    command: redis-server --requirepass {}\n", "pwurl"),
    ("chart.yaml", "    stringData:\n      admin-password: {}\n", "pwyaml"),
    ("ci.yml", "  DB_PASS: '{}'\n", "pw"),
    ("vault.hcl", 'token = "{}"\n', "token"),
    ("prom.yml", "  basic_auth:\n    username: x\n    password: '{}'\n", "pw"),
    ("cfg.xml", '<entry key="api.secret">{}</entry>\n', "token"),
    ("cfg.json", '{{"credentials":{{"username":"a","password":"{}"}}}}\n', "pw"),
    ("cfg.json", '"smtp": {{"pass": "{}"}}\n', "pw"),
    ("cfg.json5", "apiSecret: '{}',\n", "token"),
    ("x.sh", "http --auth admin:{} :8080/x\n", "pwurl"),
    ("x.sh", 'TOKEN="{}"\ncurl x\n', "token"),
    ("x.sh", "mongodump -u a -p '{}' --db x\n", "pw"),
    ("x.sh", 'echo "db_password: {}" >> vars\n', "pwurl"),
    ("Makefile", "DEPLOY_TOKEN ?= {}\n", "token"),
    ("Jenkinsfile", "environment {{ API_KEY = '{}' }}\n", "token"),
    (".envrc", "export TF_VAR_db_password={}\n", "pwurl"),
    ("x.log", "login ok user=bob pass={}\n", "pwurl"),
    ("x.log", "ws://gw?token={}\n", "token"),
    ("x.diff", "-password = old\n+password = {}\n", "pwurl"),
    ("x.diff", '+  "apiKey": "{}",\n', "token"),
    ("a.py", "DB = {{\n    'password': u'{}',\n}}\n", "pw"),
    ("a.py", 'hvac.Client(url=URL, token="{}")\n', "token"),
    ("a.py", "ssh.connect(host, username='u', password='{}')\n", "pw"),
    ("a.py", "fernet_key = b'{}='\n", "b43"),
    ("a.py", 'send(headers={{"api-key": "{}"}})\n', "token"),
    ("a.py", "@click.option('--password', default='{}')\n", "pw"),
    ("a.js", "const client = twilio(sid, '{}'); // authToken\n", "token"),
    ("a.js", "process.env.SECRET_TOKEN = '{}';\n", "token"),
    ("a.js", "axios.defaults.headers.common['Authorization'] = 'Bearer {}';\n", "token"),
    ("a.js", "passport.use(new Strategy({{ clientID: 'x', clientSecret: '{}' }}));\n", "token"),
    ("A.java", 'dataSource.setPassword("{}");\n', "pw"),
    ("A.java", 'String apikey="{}";\n', "token"),
    ("a.go", 'Password:     "{}",\n', "pw"),
    ("a.go", 'token = flag.String("token", "{}", "api token")\n', "token"),
    ("a.rb", "ENV['API_SECRET'] ||= '{}'\n", "token"),
    ("a.rb", "Redis.new(url: 'redis://u:{}@h:1')\n", "pwurl"),
    ("a.php", "mysqli_connect('h', 'u', '{}', 'd');\n", "pw"),
    ("a.pl", "my $password = '{}';\n", "pw"),
    ("a.cs", 'builder.UserID = "sa"; builder.Password = "{}";\n', "pw"),
    ("a.swift", 'static let accessToken: String = "{}"\n', "token"),
    ("a.yml", "  mysql_password: !!str {}\n", "pwyaml"),
    ("a.yml", "- {{ name: API_TOKEN, value: {} }}\n", "token"),
    ("a.yml", "password : {}\n", "pwyaml"),
    ("a.yaml", 'redis:\n  auth: {{ password: "{}" }}\n', "pw"),
    ("a.properties", "mail.smtp.password: {}\n", "pwyaml"),
    ("a.properties", "aws.secretKey = {}\n", "b64"),
    ("a.ini", "; backup\nftp_password={}\n", "pwyaml"),
    ("a.conf", 'bind_password "{}"\n', "pw"),
    ("a.conf", "masterauth {}\n", "pwyaml"),
    ("a.xml", '<param name="db.password">{}</param>\n', "pwurl"),
    ("a.xml", "<setting name=\"ApiSecret\" value='{}'/>\n", "token"),
    ("a.json", '{{"key":"DB_PASSWORD","value":"{}"}}\n', "pw"),
    ("a.json", '  "private_key_id": "x", "refresh_token": "{}"\n', "token"),
    ("a.sh", "MYSQL_PWD={} mysqldump db\n", "pwurl"),
    ("a.sh", "curl -s --user 'bob:{}' x\n", "pwurl"),
    ("a.sh", "curl -d 'user=a&password={}' https://x\n", "pwurl"),
    ("a.sh", "ansible-playbook -e 'db_password={}' x.yml\n", "pwurl"),
    ("a.sh", "docker run -e POSTGRES_PASSWORD={} postgres\n", "pwurl"),
    ("a.sh", "helm install x --set auth.password={}\n", "pwurl"),
    ("Dockerfile", "RUN pip install --extra-index-url https://u:{}@pypi.internal/ x\n", "pwurl"),
    ("a.log", "DEBUG connecting with password '{}'\n", "pw"),
    ("a.log", "refresh_token={}; expires=1\n", "token"),
    ("a.log", '"Authorization": "token {}"\n', "token"),
    ("a.md", "```\nexport SECRET_KEY={}\n```\n", "token"),
    ("a.md", "| API key | `{}` |\n", "token"),
    ("a.patch", "+DB_PASSWORD={}\n", "pwurl"),
)

# What people write to people.
SAID = (
    "the password is {}",
    "password: {}",
    "The database password is {}, please don't share it.",
    "Hi, my password for the staging server is {}.",
    "log in with admin / {}",
    "login: bob / {} on the test box",
    "You can sign in as ana@firm.test:{} until Friday",
    "user is root and the pw is {}",
    "pw: {}",
    "Passwort ist {}",
    "Das Kennwort lautet {}",
    "mot de passe : {}",
    "la contraseña es {}",
    "a senha é {}",
    "пароль: {}",
    "密码：{}",
    "use the token {} for now",
    "API key: {}",
    "Here's the api key for prod: {}",
    "our API token is {} (read only)",
    "secret = {}",
    "set PASSWORD to {} and try again",
    "please put password={} into the form",
    "the wifi password is `{}`",
    'root\'s password is "{}"',
    "Password - {}",
    "credentials: deploy/{}",
    "my passphrase is {}",
    "I changed the admin password to {} yesterday",
    "Access token → {}",
    "PASSWORD {}",
    "The client secret for the app is {}",
    "pass: {}",
    "db creds are app:{}",
    "please use pw {} for the vpn",
    "The password for admin@firm.test is: {}",
    "new password → {}",
    "username: ana, password: {}",
    "user: ana\npassword: {}",
    "My login is ana and my password is {}",
    "wifi pass = {}",
    "the key for the API is {}",
    "I'm sending you the token: {}",
    "token is {}",
    "Use {} as the password",
    "'{}' is the root password",
    "{} is the password",
    "password (temporary): {}",
    "**Password:** {}",
    "- Password: `{}`",
    "| password | {} |",
    "Password:\n\n    {}\n",
    "the password was {}",
    "passcode {}",
    "MySQL root password {}",
    "ssh deploy@host with password {}",
    "set the env var API_KEY={}",
    "Kennwort: {}",
    "le mot de passe est {}",
    "wachtwoord: {}",
    "hasło: {}",
    "パスワード: {}",
    "Login with user 'admin' and password '{}'",
    "Your temporary password is: {}",
    "The new root password: {}",
    "api-key = {}",
    "pwd: {}",
    "passwd={}",
    "Secret: {}",
    "I set the Postgres password to {}.",
    "User/Pass: admin/{}",
    "Username: bob\nPassword: {}",
    "its password is {} btw",
    "(password: {})",
    "password for prod = {}",
    "creds: admin:{}",
    'the passphrase for the key is "{}"',
    "Bearer token: {}",
    "> password: {}",
    "1. password: {}",
    "Zugangsdaten: bob / {}",
    "Mein Passwort lautet {}",
    "the old password was {} and the new one is secret",
    "My password: {}",
    "the admin password's {}",
    "username bob / password {}",
    "login=bob password={}",
    "I think the password might be {}",
    "password was set to {}",
    "The pw for the db is {}",
    "here is my token {}",
    "Try {} as password",
    "its token: {}",
    "Benutzer: bob\nPasswort: {}",
    "The secret key is `{}`.",
    'The API token: "{}"',
    "password => {}",
    "pwd is {}",
    "please connect with postgres://app:{}@db/x",
)


@dataclass(frozen=True, slots=True)
class Case:
    """A document: its group and syntax, path and text, the secrets planted in it, and its half."""

    group: str
    syntax: str
    path: str
    text: str
    secrets: tuple[str, ...]
    half: int


def half_of(*words: str) -> int:
    return zlib.crc32("|".join(words).encode()) & 1


_BRACKETS = re.compile(r"\[(uuid|[A-Za-z]\d+)\]")


def made(form: str, luck: random.Random) -> str:
    """Return what a form describes, with luck in place of brackets."""

    def one(match: re.Match[str]) -> str:
        if match[1] == "uuid":
            return "-".join("".join(luck.choices(_ALPHABETS["h"], k=k)) for k in (8, 4, 4, 4, 12))
        return "".join(luck.choices(_ALPHABETS[match[1][0]], k=int(match[1][1:])))

    return _BRACKETS.sub(one, form)


_WORDS = (
    *("winter", "falcon", "maple", "rocket", "tiger", "shadow", "purple", "coffee", "dragon", "summer"),
    *("monkey", "orange", "silver", "planet"),
)


def password(luck: random.Random, *, signs: str = "!@#%^*+=?") -> str:
    """Return a password as people and their programs choose them."""
    word, other = luck.sample(_WORDS, 2)
    number = str(luck.randrange(10, 9999))
    sign = luck.choice(signs)
    alphabet = string.ascii_letters + string.digits + signs
    return luck.choice(
        (
            f"{word}{number}",
            f"{word.title()}{number}{sign}",
            f"{word.title()}{sign}{other.title()}{number}",
            f"{word}-{other}-{number}-{luck.choice(_WORDS)}",
            "P4" + "".join(luck.choices(alphabet, k=10)),
            "".join(luck.choices(alphabet, k=18)) + "7x",
            "".join(luck.choices(string.ascii_letters + string.digits, k=14)) + "2f",
            "".join(luck.choices(_ALPHABETS["h"], k=15)) + "b1",
            f"{word.replace('a', '4').replace('e', '3')}_{number}",
        )
    )


def _value(sort: str, luck: random.Random) -> str:
    if sort.startswith("pw"):
        signs = {"pw": "!@#%^*+=?", "pwurl": "!*+.~", "pwyaml": "!%^*+=?@", "pwpg": "!@#%^*+=?"}
        return password(luck, signs=signs[sort])
    if sort == "basic":
        return base64.b64encode(f"bob:{password(luck)}".encode()).decode()
    forms = {
        "token": ("[A24]", "[A32]", "[h32]", "[h40]", "[w43]", "[a20]", "[A16]", "[uuid]"),
        "hex": ("[h64]", "[h32]", "[h128]"),
        "b64": ("[b40]", "[b43]=", "[b44]"),
        "b86": ("[b86]",),
        "b43": ("[b43]",),
        "url43": ("[w43]",),
        "uuid": ("[uuid]",),
    }
    return made(luck.choice(forms[sort]), luck)


def cases(seed: int = SEED, rounds: int = 4) -> Iterator[Case]:
    """Yield all documents: of known kinds, by context, said to people, and look-alikes."""
    luck = random.Random(seed)
    for form in KNOWN.split():
        for number in range(rounds):
            path, text = CARRIERS[(zlib.crc32(form.encode()) + number * 5) % len(CARRIERS)]
            whole = made(form, luck)
            secret = whole.partition("<")[2].rstrip(">") or whole
            yield Case(
                "known",
                form,
                path,
                text.format(whole.replace("<", "").replace(">", "")),
                (secret,),
                half_of(form),
            )
    for path, text, sort in CONTEXT:
        for _ in range(rounds * 2):
            if sort == "apr":
                text_made = made(text, luck)
                yield Case(
                    "context",
                    f"{path}: {text}",
                    path,
                    text_made,
                    (text_made.strip().partition(":")[2],),
                    half_of(path, text),
                )
                continue
            secret = _value(sort, luck)
            yield Case(
                "context", f"{path}: {text}", path, text.format(secret), (secret,), half_of(path, text)
            )
    for text in SAID:
        for number in range(rounds * 2):
            secret = _value(
                "token" if any(w in text.lower() for w in ("token", "key", "secret")) else "pw", luck
            )
            path = ("", "notes.md", "mail.txt")[number % 3]
            around = luck.choice(("{}", "Hello,\n\n{}\n\nBest, Ana\n", "TODO: {}\n"))
            yield Case("said", text, path, around.format(text.format(secret)), (secret,), half_of(text))
    for path, lines in LOOKALIKES.items():
        for text in lines.strip().splitlines():
            document = made(text, luck).replace("\\n", "\n") + "\n"
            yield Case("lookalike", text, path, document, (), half_of(path, text))


# What only looks like a secret: references, types, names, digests, examples that say so; one a line.
LOOKALIKES = {
    "a.py": """
password = os.environ.get("PASSWORD2")
token = re.compile(r"[a-z]+2")
raise AuthError("secret 12 not found")
def set_password(self, raw_password2): ...
key = "%s:%d" % (name, 2)
secret = cfg["secret2"]["value"]
token = Token(TokenType.NAME2, "x")
log.info("password for %s is set", user2)
passwords = [line.strip() for line in f2]
api_key = None  # set with --api-key=KEY2
self.password = password1
return {"password": self.password2}
password = input("Password 2: ")
cursor.execute("SELECT password FROM users WHERE id2")
key = request.GET["key1"]
tokens = re.findall(r"\\w+", text2)
assert client.get("/token/v2").status == 401
with open("secret_2.txt") as f:
PASSWORD_RESET_URL = "/accounts/reset/2"
password = kwargs.pop("password2", None)
secret = hmac.new(key, b"m1", "sha256").hexdigest()
url = f"redis://:{password}@{host}:6379/0"
token = jwt.encode(payload, settings.SECRET_KEY_2)
raise PermissionError(f"token {token!r} expired 2")
password = os.environ["DB_PASSWORD"]
password = os.getenv("DB_PASSWORD", "")
token = get_token(user_id2)
def login(user: str, password: str) -> Token1: ...
password: str | None = None
self.token = tokens[0]
parser.add_argument("--password", help="the password to use")
PASSWORD_FIELD = "password2"
raise ValueError("password must have 8 characters")
token_type = "bearer"
secret = Secret.from_file(path1)
API_KEY = "your-api-key-here"
password = "changeme"
api_key = "xxxxxxxxxxxxxxxxxxxxxxxx"
secret = "<secret>"
token = f"{prefix}{number}"
cache_key = "[h32]"
key = "user:[d6]:profile"
etag = "[h40]"
sha256 = "[h64]"
request_id = "[uuid]"
commit = "[h40]"
assert digest == "[h64]"
password_hash = hash_password("x", salt2)
tokens = ["the", "cat3", "sat"]
pad_token = "<pad>"
eos_token_id = 50256
next_token = lexer.peek(1)
if token == "identifier":
foreign_key = "orders.customer_id2"
primary_key = "customer_id_v2"
sort_key = "date-2024"
public_key = "[b43]="
keyword = "lambda1"
monkey = Monkey(2)
author = "j2smith"
passed = "3/4"
url = "https://example.com/reset?token={token}"
secret_name = "prod/db/password1"
SECRET_PATH = "/run/secrets/db1"
ssh_key_file = "~/.ssh/id_ed25519"
password_regex = r"^(?=.*[0-9]).{8,}$"
auth = HTTPBasicAuth(user, password)
dsn = "postgresql://user:password@localhost/db"
dsn = f"postgresql://{user}:{password}@{host}/db"
headers = {"Authorization": f"Bearer {token}"}
headers = {"Authorization": "Bearer " + token}
version = "1.2.3-beta4"
mime = "application/vnd.api+json;version=2"
password = getpass("Password 1: ")
tokenizer = "bert-base-uncased-v2"
password = "*" * 8
print("password:", len(password))
logger.info("token %s", token_id1)
secret_key = secrets.token_hex(32)
key = hashlib.sha256(b"x1").hexdigest()
passwd = pwd.getpwuid(1000)
password_validators = ["MinLength8"]
add("--key", help="API key (32 characters)")
Field(description="Password of the user, 8 to 64")
token_url = "https://auth.internal/oauth2/token"
AUTH_HEADER = "X-Auth-Token-2"
SESSION_COOKIE_NAME = "sessionid2"
assert token.type == "NUMBER1"
tokens = line.split("=", 2)
API_KEYS = load("keys2.json")
credentials = Credentials.from_file("a1.json")
if "password1" in form.errors:
api_key_id = "[uuid]"
model = "gpt-4o-2024-08-06"
key = ("a1", "b2")
token = "NUMBER_LITERAL_2"
auth = "oauth2"
secret = getattr(settings, "SECRET_2")
def test_password_is_hashed_with_bcrypt12(): ...
""",
    "a.ts": """
const { password2 } = req.body;
keyFile: "./certs/key-2024.pem",
secretOrKey: env.JWT_SECRET2,
type: "password", autoComplete: "current-password2"
const tokenUrl = `${base}/oauth/token2`;
const key = crypto.randomBytes(32);
password: z.string().min(8),
@Column() password2: string;
if (token.length > 20) {
const keys = Object.keys(map2);
auth: { user, pass: password1 },
<PasswordInput id="password-2" name="password2" />
const password = process.env.DB_PASSWORD!;
password: string;
interface A { token?: string; apiKey: string }
const token = await getToken(user1);
export const PASSWORD_MIN = 12;
label: "Password 2",
const key = `user-${id}`;
placeholder="Enter password 1"
type Token = { kind: 'number1' }
const { accessToken } = useAuth2();
import { token } from "./token2.js";
secret: config.get('jwt.secret1'),
className="password-input-2"
integrity: 'sha512-[b86]=='
const apiKey = import.meta.env.VITE_API_KEY1;
key: "sidebar.item-12"
authProvider: 'oauth2',
if (!password) return 401;
password !== confirmPassword2
<input type="password" name="pw1" />
key="row-1-col-2"
case "ArrowDown2": key = 40;
const token = tokens[index + 1];
export type ApiKey = string & { brand: "ApiKey2" };
const passwordRules = [minLength(8)];
onChange={e => setPassword(e.target.value2)}
this.token = this.tokens.next1();
const secret = await client.getSecret("db-password-1");
throw new Error("Token 12 is invalid");
""",
    "Main.java": """
private String password;
@Value("${db.password}") String password;
String token = request.getHeader(TOKEN1);
public void setPassword(String password1) {
KeyStore ks = KeyStore.getInstance("PKCS12");
String KEY = "user.name.v2";
""",
    "main.go": """
Password string `json:"password1"`
token := os.Getenv("TOKEN1")
case token.IDENT2:
key := fmt.Sprintf("k%d", i)
var ErrToken = errors.New("bad token 12")
h1:[b43]= // go.sum
flag.String("password", "", "password of user1")
""",
    "values.yaml": """
password: ${DB_PASSWORD}
password: {{ .Values.db.password }}
password: !vault |
secretName: tls-cert-2024
passwordSecretRef: db-creds-1
tokenExpiry: 3600s
password: null
key: app.kubernetes.io/name1
existingSecret: prod-db-2
image: registry.internal/app@sha256:[h64]
password: <your password>
password: ENC[AES256_GCM,data:[b40]]
type: string\\nformat: password
token: $TOKEN
password: changeme
password: ********
checksum/secret: [h64]
password: {{ lookup('env', 'PW1') }}
credentialsId: jenkins-git-2
apiKeyHeader: X-Api-Key1
token: ${{ secrets.API_KEY2 }}
password:\\n  secretKeyRef:\\n    name: db-1\\n    key: password1
apiKey: *default_key
keyPrefix: app2
secret: {{ vault_db_password2 }}
tokens: 4096
auth: none
credentials: /etc/app/creds1.json
privateKeyFile: /etc/ssl/key1.pem
""",
    ".env.example": """
DB_PASSWORD=
API_KEY=your_api_key
TOKEN=<token>
SECRET_KEY=change-me-please1
PASSWORD=example123
JWT_SECRET=replace_me_2
STRIPE_KEY=sk_test_xxxxxxxxxxxxxxxxxxxxxxxx
AWS_ACCESS_KEY_ID=AKIAXXXXXXXXEXAMPLE1
PASSWORD_MIN_LENGTH=12
""",
    "package-lock.json": """
"integrity": "sha512-[b86]=="
"integrity": "sha1-[b27]="
"resolved": "https://registry.npmjs.org/a/-/a-1.2.3.tgz"
"node_modules/js-tokens": {"version": "4.0.0"}
"tokenizr": "^1.6.10"
""",
    "data.json": """
{"id": "[uuid]", "key": "[uuid]"}
{"sha": "[h40]", "md5": "[h32]"}
{"password": "string"}
{"password": null}
{"type": "password", "name": "pw1"}
{"passwordHelp": "at least 8 characters"}
{"secretArn": "arn:aws:secretsmanager:eu:1:s"}
{"token": "{{token}}"}
{"$ref": "#/definitions/Token2"}
{"keyCode": 13, "key": "Enter2"}
{"public_key": "[b43]="}
{"tokens_used": 1024, "total_tokens": 2048}
{"color": "#[h6]"}
{"cursor": "[h24]"}
{"image": "data:image/png;base64,[b200]"}
""",
    "": """
I forgot my password 2 times
Where is the API key stored?
the password policy is: 12+ characters
a token is 4 characters of text
It is a secret :-)
key: up/down arrows
ERROR 1045 (28000): Access denied for user 'root'@'localhost' (using password: YES)
The password is at least 8 characters
password (8-64 characters):
the key is user:123:name
See the docs on tokens: https://docs.internal/tokens2
Use your own password of 12+ characters
the password field is input#pw2
he lost his password on 12.05.2024
the secret to success is 99% work
KeyError: "user_id2"
TypeError: got an unexpected keyword argument "password2"
the access key is in 1Password
Password:
token: expected 2 arguments, got 3
the key is in slot 3 of the map
The password is required.
The token is invalid or expired.
password is case-sensitive
The key is sorted by name.
Passwords must contain 8 characters and 1 digit.
the token is base64 encoded
Please pass it as the `first` argument
the key is the sha256 of the file
secret is optional (since 2.1)
token is utf-8 text
commit [h40]
id [uuid]
password: the password of the user
error: password incorrect for user2
key is 32-byte
sha256:[h64]
Password changed on 2024-05-06
log in with GitHub / Google2
your password was reset 3 times
The API key is stored in vault
use the token from step-2
SECRET-GITHUB-7K2Q9D is hidden
git log --author=me2
passed 12 of 13 tests
key: value1
password=$PASSWORD
eyJhbGciOi is how a token begins
basic authentication is off
bearer tokens are checked
curl -u $USER:$PASS http://x
curl -u user:password http://localhost
mysql -u root -p shop2
git clone https://github.com/a/b2.git
npm_config_registry=https://r1
sk-learn2 is a library; ghp_ is how it begins
-----BEGIN CERTIFICATE-----\\nMII[b60]\\n-----END CERTIFICATE-----
ssh-ed25519 AAAA[b64] me@host
-----BEGIN PUBLIC KEY-----\\nMII[b60]\\n-----END PUBLIC KEY-----
0x[h40]
2024-05-06T07:08:09Z
AKIA is a prefix
[b60]
the password was changed to something else
password authentication failed for user "app1"
Enter password for admin1:
Wrong password (attempt 3/5)
please rotate the API key by 2024-06-01
token expired at 12:30
the secret is to write less
keys are sorted by id2
passkey support in v2.1
the token is valid for 3600s
password: see 1Password
index 1a2b3c4..5d6e7f8 100644
the API key is 32 characters long
Your password must be at least 12-character
the key is (user_id, day2)
token count: 1234
pass rate: 98.5%
2 passed, 1 failed in 3.21s
the secret is mounted at /run/secrets/db1
the password is stored with bcrypt2
author: j.doe2@firm.test
set the token to null
authentication to host1 is by key
the password is base64-encoded
auth is via OAuth2
""",
    "main.tf": """
password = random_password.db.result
access_key = var.access_key2
secret_id = aws_secretsmanager_secret.x1.id
password = data.vault_generic_secret.db.data["password1"]
kms_key_id = "arn:aws:kms:eu-1:1234:key/[uuid]"
key = "terraform/state-2.tfstate"
""",
    "poetry.lock": """
    {file = "a-1.0-py3-none-any.whl", hash = "sha256:[h64]"},
content-hash = "[h64]"
""",
    "a.conf": """
# The password is really only needed once
# The password which is used to protect the store
# Maximum number of days a password may be used.
# Options to pass to initdb.
# If not set, the password and access files are ignored.
""",
    "Cargo.lock": """
checksum = "[h64]"
""",
    "index.html": """
<script src="a.js" integrity="sha384-[b64]" crossorigin></script>
<label for="password1">Password</label>
<input type="password" placeholder="8+ characters">
""",
    "a.yml": """
password: "{{ lookup('file', 'pw2') }}"
password: __PASSWORD2__
secret_id: projects/x2/secrets/y
token_ttl: 24h
key_name: deploy-2024
pass: 12
password: "{{ db_password2 }}"
token: ${{ steps.auth.outputs.token2 }}
secretKeyRef: {name: a, key: b2}
apiVersion: v1\\ndata:\\n  key: value2
api_key: ""
passwordFrom: vault-2
tokenReview: true
""",
}
