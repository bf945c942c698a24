"""Kinds of secrets as they stand in files, each with a value that was generated just now.

Prefixes are put together here, so that the file itself holds nothing that a scanner would find.
"""

from __future__ import annotations

import random
import string
from base64 import b64encode
from collections.abc import Iterator
from typing import NamedTuple

from calomel.workspace.secrets import masked, spans

RNG = random.Random(80)
HEX = "0123456789abcdef"
UPPER = string.ascii_uppercase + string.digits
ALNUM = string.ascii_letters + string.digits
URL = ALNUM + "_-"


def some(count: int, letters: str = ALNUM) -> str:
    """So many letters, with one digit at least."""
    at = RNG.randrange(1, count - 1)
    digits = "".join(sorted(set(letters) & set(string.digits))) or letters
    return "".join(RNG.choice(digits if number == at else letters) for number in range(count))


def word(length: int = 6) -> str:
    return "".join(RNG.choice("aeiou" if at % 2 else "bdfgklmnprst") for at in range(length))


class Kind(NamedTuple):
    """One kind: the text it stands in, and the parts of it that nobody may read."""

    name: str
    text: str
    parts: tuple[str, ...]


def _shaped() -> Iterator[tuple[str, str]]:
    """Tokens that are known by their shape, wherever they stand."""
    yield "aws access key", "AK" + "IA" + some(16, UPPER)
    yield "github", "gh" + "p_" + some(36)
    yield "slack bot", "xo" + f"xb-{some(12, string.digits)}-{some(12, string.digits)}-{some(24)}"
    yield "anthropic", "sk" + "-ant-api03-" + some(93, URL) + "AA"
    yield "openai project", "sk" + "-proj-" + some(74, URL)
    yield "google api", "AI" + "za" + some(35, URL)
    yield "stripe", "sk" + "_live_" + some(24)
    yield "npm", "np" + "m_" + some(36)
    yield "jwt", "ey" + f"J{some(20)}.ey" + f"J{some(40)}.{some(43, URL)}"
    yield "telegram bot", f"{some(10, '123456789')}:AA{some(33, URL)}"
    yield "mailchimp", f"{some(32, HEX)}-us{RNG.randrange(10, 20)}"
    yield "discord bot", f"MT{some(24)}.G{some(5, URL)}.{some(38, URL)}"
    yield "azure ad", f"{some(3)}8Q~{some(34, URL)}"
    yield "terraform cloud", f"{some(14)}.atlas" + f"v1.{some(66, URL)}"
    yield "dynatrace", "dt0" + f"c01.{some(24, UPPER)}.{some(64, UPPER)}"
    yield "fly.io", "fm" + "2_" + some(120)
    yield (
        "microsoft teams hook",
        f"corp.webhook.office.com/webhookb2/{_uuid()}@{_uuid()}/IncomingWebhook/{some(32, HEX)}/{_uuid()}",
    )


def _uuid() -> str:
    return "-".join(some(count, HEX) for count in (8, 4, 4, 4, 12))


def _standing() -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Secrets that are known by what stands around them: a name, a command, an address. `{}` is where they stand."""
    random_value, password = some(40), f"{word(5).title()}{word(4)}!{some(3, '123456789')}"
    base = b64encode(f"{word()}-{some(12)}".encode()).decode()
    words = [word(RNG.randrange(4, 8)) for _ in range(6)]
    yield "password in quotes", 'password = "{}"\n', (password,)
    yield "password in settings", "DB_PASSWORD={}\n", (password,)
    for name in ("API_KEY", "SIGNING_KEY", "ACCESS_KEY", "CLIENT_KEY"):
        yield f"{name} below its import", f"from config import {name}\n\n{name} = '{{}}'\n", (some(32),)
    yield "key in json", '{{"clientSecret": "{}"}}\n', (some(32),)
    yield "passphrase", 'passphrase = "{}"\n', (" ".join(words),)
    yield "mnemonic", "MNEMONIC='{}'\n", (" ".join([*words, *map(str.lower, words)]),)
    yield "passphrase with dashes", "gpg_passphrase: {}\n", ("-".join(words[:5]),)
    yield "kubernetes tls.key", "data:\n  tls.key: {}\n", ("LS0tLS1" + "CRUdJTiBSU0Eg" + some(400),)
    yield "kubernetes password", "data:\n  password: {}\n", (base,)
    yield "kubernetes variable", "env:\n  - name: DB_PASSWORD\n    value: {}\n", (password,)
    yield "secret over lines", 'secret = """\n{}\n{}\n"""\n', (some(44), some(40))
    yield "secret in a block of yaml", "client_secret: |\n  {}\nport: 80\n", (some(44),)
    yield "cut prefix", 'token = "gh' + 'p_" + "{}"\n', (some(36),)
    yield "cut password", 'password = "{}" + "{}"\n', (some(12) + "!", some(12) + "?")
    yield "mysql -p", "mysql -u root -p{} shop < dump.sql\n", (password,)
    yield "sshpass", "sshpass -p {} ssh root@10.0.0.1\n", (password,)
    yield "smtp login", 'smtp.login("robot@example.org", "{}")\n', (password,)
    yield "terraform default", 'variable "db_password" {{\n  type    = string\n  default = "{}"\n}}\n', (password,)
    yield "redis-cli -a", "redis-cli -h cache -a {} ping\n", (random_value,)
    yield "psql", "PGPASSWORD={} psql -h db shop\n", (password,)
    yield "curl -u", "curl -u robot:{} https://example.org/x\n", (password,)
    yield "docker login -p", "docker login -u robot -p {} registry.example.org\n", (password,)
    yield "url", "postgres:" + "//app:{}@db.example.org/shop\n", (password,)
    yield "bearer", "Authorization: Bearer {}\n", (some(40),)
    yield "basic", "Authorization: Basic {}\n", (b64encode(f"robot:{password}".encode()).decode(),)
    yield "azure connection", "AccountName=shop;AccountKey={};EndpointSuffix=x\n", (some(86) + "==",)
    yield "sas signature", "https://a.example.org/c?sv=2024&sig={}\n", (some(43) + "%3D",)
    yield "sql", "CREATE USER shop IDENTIFIED BY '{}';\n", (password,)
    yield "netrc", "machine example.org login robot password {}\n", (password,)
    yield "npmrc", "//registry.example.org/:_authToken={}\n", (_uuid(),)
    yield "dict", 'connect(host, auth=("robot", "{}"))\n', (password,)
    yield "private key", "{}\n", _pem()
    yield "datadog by name", "datadog_app = '{}'\n", (some(40, HEX),)
    yield "service by name", 'algolia.init("{}")\n', (some(32, HEX),)
    yield "hadoop", "<name>fs.s3a.secret.key</name>\n<value>{}</value>\n", (some(40),)


def _pem() -> tuple[str, ...]:
    lines = (some(64), some(64), some(64), some(20))
    return ("-----BEGIN " + "EC PRIVATE KEY-----\n" + "\n".join(lines) + "\n-----END " + "EC PRIVATE KEY-----",)


def _below() -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Secrets on other lines than what announces them. `{}` is where they stand."""
    password = f"{word(5).title()}{word(4)}!{some(3, '123456789')}"
    yield "text over lines", 'secret = """\n{}\n{}\n"""\n', (some(44), some(40))
    yield "kubernetes variable", "env:\n  - name: DB_PASSWORD\n    value: {}\n", (password,)
    yield "kubernetes key", "env:\n  - name: API_KEY\n    value: {}\n", (some(32),)
    yield "typed constant over two lines", 'const TOKEN: &str =\n    "{}";\n', (some(32),)
    yield "element over three lines", "<password>\n  {}\n</password>\n", (some(32),)
    yield "json list", '"api_keys": [\n  "{}",\n  "{}"\n]\n', (some(32), some(32))
    yield "python list", "API_KEYS = [\n" + "    '{}',\n" * 20 + "]\n", tuple(some(32) for _ in range(20))
    yield "value in brackets", 'API_KEY = (\n    "{}"\n    "{}"\n)\n', (some(24), some(24))
    yield "folded yaml", "client_secret: >-\n  {}\nport: 80\n", (some(44),)
    yield "yaml list", "api_keys:\n  - {}\n  - {}\nport: 80\n", (some(32), some(32))
    yield "terraform default", 'variable "db_password" {{\n  type    = string\n  default = "{}"\n}}\n', (password,)
    yield "continuation", "export API_TOKEN=\\\n{}\n", (some(40),)
    yield "value on the next line", "api_key =\n    '{}'\n", (some(32),)
    yield "dict", 'const tokens = {{\n  live: "{}",\n  test: "{}",\n}};\n', (some(40), some(40))
    yield "hadoop", "<name>fs.s3a.secret.key</name>\n<value>{}</value>\n", (some(40),)
    yield "private key", "KEY = {}\n", _pem()
    yield "private key in a text", 'KEY = """{}"""\n', _pem()


def below() -> list[Kind]:
    """Secrets on other lines than what announces them; the same ones in every run."""
    RNG.seed(81)
    return [Kind(name, text.format(*parts), parts) for name, text, parts in _below()]


def kinds() -> list[Kind]:
    """All of them; the same ones in every run."""
    RNG.seed(80)
    shaped = [Kind(name, f"x = '{value}'\n", (value,)) for name, value in _shaped()]
    return shaped + [Kind(name, text.format(*parts), parts) for name, text, parts in _standing()]


# Where a password stands. `{}` is the password.
PASSWORD_FORMS = r"""
password = {}
password={}
password: {}
pass: {}
PASSWORD={}
db_password = "{}"
DB_PASS='{}'
pw = "{}"
pw: {}
userPw = "{}"
passwd = '{}'
PGPASSWORD={} psql -h db
MYSQL_PWD={}
# password: {}
// password: {}
# the password is {}
-- password: {}
; password = {}
<!-- password: {} -->
/* pwd={} */
"password": "{}",
'password': '{}',
"{{\"user\": \"robot\", \"password\": \"{}\"}}"
'{{"password": "{}"}}'
{{"auth": {{"user": "a", "pass": "{}"}}}}
--set db.password={}
--set auth.rootPassword={},auth.database=shop
helm install x --set-string secret.password={}
--password {}
--password={}
-p{} mysql
mysql -uroot -p{} shop
mysqldump --password={} shop
psql "host=db user=app password={} dbname=shop"
password := "{}"
password := `{}`
const dbPassword = "{}"
let password = String::from("{}");
var password string = "{}"
String password = "{}";
private static final String DB_PASSWORD = "{}";
std::string password{{"{}"}};
#define DB_PASSWORD "{}"
$password = '{}';
define('DB_PASSWORD', '{}');
@password = "{}"
password => "{}",
:password => "{}"
password: "{}", host: "db"
conn = connect(user="app", password="{}")
connect("db", "app", password='{}')
config.set("password", "{}")
config["password"] = "{}"
os.environ["DB_PASSWORD"] = "{}"
process.env.DB_PASSWORD = '{}'
setProperty("db.password", "{}")
spring.datasource.password={}
spring.datasource.password: {}
jdbc:postgresql://db/shop?user=app&password={}
jdbc:mysql://db/shop?user=app&password={}&ssl=true
postgres://app:{}@db/shop
redis://:{}@cache:6379/0
amqp://robot:{}@mq//
mongodb+srv://app:{}@cluster0.example.net/x
https://robot:{}@example.org/repo.git
Server=db;Database=shop;User Id=app;Password={};
Server=db;Uid=app;Pwd={}
"Data Source=db;User ID=sa;Password={}"
CREATE USER app WITH PASSWORD '{}';
CREATE USER app PASSWORD '{}';
ALTER ROLE app WITH LOGIN PASSWORD '{}';
ALTER USER 'app'@'%' IDENTIFIED BY '{}';
GRANT ALL ON shop.* TO 'app'@'%' IDENTIFIED BY '{}';
SET PASSWORD FOR 'app' = '{}';
ENV DB_PASSWORD={}
ENV DB_PASSWORD {}
ARG PASSWORD={}
  - DB_PASSWORD={}
  - "DB_PASSWORD={}"
docker run -e DB_PASSWORD={} app
docker login -u robot -p {} registry
docker login --username robot --password {} registry
export DB_PASSWORD={}
export DB_PASSWORD="{}"
set DB_PASSWORD={}
setx DB_PASSWORD {}
$env:DB_PASSWORD = "{}"
set -x DB_PASSWORD {}
setenv DB_PASSWORD {}
sshpass -p {} ssh root@host
sshpass -p'{}' ssh root@host
echo "{}" | sudo -S ls
echo {} | docker login -u robot --password-stdin
curl -u robot:{} https://example.org
curl --user robot:{} https://example.org
curl --user "robot:{}" https://example.org
curl --proxy-user robot:{} https://example.org
wget --user=robot --password={} https://example.org
wget --http-password={} https://example.org
http -a robot:{} example.org
smbclient //host/share -U robot%{}
net use z: \\host\share /user:robot {}
openssl rsa -in k.pem -passin pass:{}
openssl enc -k {} -aes256
gpg --batch --passphrase {} -d f
keytool -storepass {} -keystore k
keytool -keypass {} -list
ansible_password={}
ansible_ssh_pass: {}
ansible_become_password: "{}"
machine example.org login robot password {}
<password>{}</password>
<property name="password" value="{}"/>
<property name="password">{}</property>
<add key="DbPassword" value="{}" />
<entry key="db.password">{}</entry>
password = "{}"  # TODO
password  =  {}  ; old
PASSWORDS = ["changeme", "{}"]
passwords: [abc, "{}"]
credentials = ("robot", "{}")
auth = ("robot", "{}")
auth=HTTPBasicAuth("robot", "{}")
auth: {{ username: "robot", password: "{}" }}
login(username="robot", password="{}")
smtp.login("robot@example.org", "{}")
new NetworkCredential("robot", "{}")
PasswordAuthentication("robot", "{}".toCharArray())
if password == "{}":
if (pwd === '{}') {{
assert user.password == "{}"
password ||= "{}"
password ?? "{}"
password = os.getenv("DB_PASSWORD", "{}")
password = process.env.DB_PASSWORD || "{}"
password = ENV.fetch("DB_PASSWORD", "{}")
getenv("DB_PASSWORD") ?: "{}"
rootpw {}
rootpw --plaintext {}
requirepass {}
masterauth {}
wpa_passphrase={}
psk="{}"
bind_password: {}
ldapsearch -D cn=admin -w {} -b dc=x
snmp community {}
enable secret {}
username robot password 0 {}
"password" : "{}"
password:'{}'
pwd:{}
PASSWORD : {}
db: {{password: {}}}
adminPassword='{}'
secret = "{}"
db_secret: {}
client_secret={}
SECRET_KEY = '{}'
passphrase: "{}"
pin_code = "{}"
credential = "{}"
"""

# Where a generated key stands. `{}` is the key.
KEY_FORMS = r"""
api_key = {}
api_key={}
api_key: {}
apiKey: "{}"
API_KEY="{}"
apikey = '{}'
API-Key: {}
X-API-Key: {}
x-api-key={}
"x-api-key": "{}",
curl -H "X-Api-Key: {}" https://example.org
curl -H 'Authorization: Bearer {}' https://example.org
curl -H "Authorization: token {}" https://example.org
curl -H "PRIVATE-TOKEN: {}" https://example.org
headers = {{"Authorization": "Bearer {}"}}
headers = {{"Authorization": "Token {}"}}
headers = {{"Authorization": f"ApiKey {}"}}
Authorization: ApiKey {}
https://api.example.org/v1?api_key={}
https://api.example.org/v1?access_token={}&x=1
https://api.example.org/v1?key={}
https://example.org/?token={}
# api key: {}
// token: {}
# key = {}
/* secret: {} */
-- token {}
token = "{}"
token := "{}"
auth_token = "{}"
authToken={}
access_token: {}
refresh_token: "{}"
bearer_token = '{}'
session_token = "{}"
csrf_token = "{}"
secret = "{}"
secret_key = "{}"
SECRET_KEY = "django-insecure-{}"
SECRET_KEY_BASE={}
client_secret = "{}"
clientSecret: '{}'
app_secret: {}
signing_secret={}
webhook_secret = "{}"
jwt_secret = "{}"
JWT_KEY={}
encryption_key = "{}"
ENCRYPTION_KEY: {}
private_key = "{}"
privateKey: "{}"
aws_secret_access_key = {}
AWS_SECRET_ACCESS_KEY={}
"SecretAccessKey": "{}"
secretAccessKey: "{}"
azure_storage_key = "{}"
AccountKey={};EndpointSuffix=x
SharedAccessKey={}
account_key = "{}"
license_key = "{}"
licenseKey={}
salt = "{}"
PASSWORD_SALT = "{}"
cookie_secret: "{}"
session_secret: "{}"
master_key: {}
RAILS_MASTER_KEY={}
deploy_key = "{}"
consumer_key = "{}"
consumer_secret = "{}"
API_KEYS = ["", "{}"]
api_keys = ["{}", "b"]
keys: [a, "{}"]
api_keys: [one, {}]
tokens = {{"live": "{}"}}
const TOKENS = {{ live: "{}" }};
Client("{}", api_key="{}")
new Client({{ apiKey: "{}" }})
client = Client(token="{}")
client.set_api_key("{}")
client.setToken("{}")
openai.api_key = "{}"
stripe.api_key = '{}'
process.env.API_KEY = "{}"
os.environ["API_KEY"] = "{}"
os.environ.setdefault("API_TOKEN", "{}")
api_key = getenv("API_KEY") or "{}"
api_key = os.getenv("API_KEY") if x else "{}"
const API_KEY = env.API_KEY ?? "{}"
ACCESS_KEY, API_KEY = "a", "{}"
$env:API_KEY = "{}"
export API_KEY={}
export API_KEY='{}'
set API_KEY={}
setx API_KEY "{}"
set -gx API_KEY {}
ENV API_KEY={}
ENV API_KEY {}
--api-key {}
--api-key={}
--token {}
--token "{}"
--auth-token={}
--set image.apiKey={}
-e API_KEY={}
terraform apply -var api_key={}
-var="api_key={}"
  API_KEY: {}
  apiKey: {} # live
stringData: {{ apiKey: {} }}
<apiKey>{}</apiKey>
<add key="ApiKey" value="{}"/>
<string name="google_api_key">{}</string>
<meta-data android:name="API_KEY" android:value="{}"/>
<key>ApiKey</key><string>{}</string>
api.key={}
"{{\"api_key\": \"{}\"}}"
'{{"token": "{}"}}'
"apiKey": "{}"
:api_key => "{}"
api_key: "{}",
val apiKey = "{}"
let apiKey: &str = "{}";
const API_KEY: &'static str = "{}";
var apiKey string = "{}"
static const char *api_key = "{}";
#define API_KEY "{}"
private readonly string _apiKey = "{}";
public string ApiKey {{ get; set; }} = "{}";
define("API_KEY", "{}");
$apiKey = '{}';
@api_key = '{}'
if (apiKey === "{}") return;
return {{"api_key": "{}"}}
npm config set //registry.example.org/:_authToken {}
//registry.example.org/:_authToken={}
_auth = {}
extra-index-url = https://__token__:{}@pypi.example.org/simple
git clone https://oauth2:{}@git.example.org/x.git
git remote add x https://{}@git.example.org/x.git
SENTRY_DSN=https://{}@sentry.example.org/1
DD_API_KEY={}
INSERT INTO api_keys (name, key) VALUES ('live', '{}');
INSERT INTO tokens VALUES ('{}');
UPDATE users SET api_token = '{}' WHERE id = 1;
xoxToken = "{}"
algolia.init("APP", "{}")
mapbox.accessToken = '{}'
"""


def everyday() -> list[Kind]:
    """Passwords and keys in the forms in which people write them down; the same ones in every run."""
    RNG.seed(82)
    found = []
    for number, form in enumerate(PASSWORD_FORMS.strip().splitlines()):
        value = f"{word(5).title()}{word(4)}{RNG.choice('!#?+=@')}{some(3, '123456789')}" if number % 2 else some(14)
        value = value.replace("@", "!") if "//" in form or "#" in form else value
        found.append(Kind(form, form.format(value) + "\n", (value,)))
    for form in KEY_FORMS.strip().splitlines():
        value = some(36)
        found.append(Kind(form, form.format(*[value] * 2) + "\n", (value,)))
    return found


def mask(text: str) -> str:
    """The text with every character of a secret replaced by an asterisk."""
    return masked(text, [(start, end) for start, end, _ in spans(text)])
