// SPDX-License-Identifier: Apache-2.0

package diagnose

import (
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// An errorSignature is a message that packages are not installed.
type errorSignature struct {
	line     *pattern.Pattern // its group, if it has one, is the package
	also     string           // a part of another line, "" for none
	programs []string         // that print it
	registry string
}

var (
	goPrograms    = []string{"go", "gotestsum", "golangci-lint", "staticcheck"}
	cargoPrograms = []string{"cargo", "rustc"}
	mavenPrograms = []string{"mvn", "java", "mvnw", "gradle", "gradlew"}
)

var signatures = []errorSignature{
	{pattern.New(`(?:^|\s)([^\s:]+)@v[^\s:]+: .*module lookup disabled by GOPROXY=off`), "", goPrograms, "go"},
	{pattern.New(`module lookup disabled by GOPROXY=off$`), "", goPrograms, "go"},
	{pattern.New("^error: no matching package named `([A-Za-z0-9_-]+)` found"), "using offline mode", cargoPrograms, "crates"},
	{pattern.New("attempting to make an HTTP request, but --(?:offline|frozen) was specified"), "", cargoPrograms, "crates"},
	{pattern.New("^error: failed to (?:download|get) `([A-Za-z0-9_-]+)"), "offline", cargoPrograms, "crates"},
	{pattern.New(`Cannot access \S+ \(\S+\) in offline mode and the artifact (\S+) has not been downloaded`), "", mavenPrograms, "maven"},
	{pattern.New(`No cached version of (\S+) available for offline mode`), "", mavenPrograms, "maven"},
	{pattern.New(`Could not find (?:gem ')?([A-Za-z0-9_.-]+)\b.* in (?:locally installed gems|any of the sources)`), "bundle install", []string{"bundle", "bundler", "ruby", "rake", "rails", "rspec"}, "rubygems"},
	{pattern.New(`Failed opening required '[^']*/(vendor/autoload\.php)'`), "", []string{"php", "composer", "phpunit"}, "packagist"},
	{pattern.New(`^You need to set up the project dependencies using`), "composer install", []string{"php", "composer", "phpunit"}, "packagist"},
	{pattern.New(`^(?:\S.*: )?error NETSDK1004: Assets file '[^']*project\.assets\.json' not found`), "", []string{"dotnet"}, "nuget"},
	{pattern.New(`^Unchecked dependencies for environment \w+:`), "mix deps.get", []string{"mix", "elixir", "erl", "erlexec", "beam.smp"}, "hex"},
	{pattern.New(`^Error: Couldn't resolve the package '([a-z0-9_]+)' in 'package:`), "", []string{"dart", "flutter"}, "pub"},
	{pattern.New(`Local package.json exists, but node_modules missing`), "", []string{"pnpm", "node"}, "npm"},
	{pattern.New(`^(?:Usage Error: )?The project in \S+ doesn't seem to have been installed`), "", []string{"yarn", "node"}, "npm"},
	{pattern.New(`^npm (?:ERR!|error) request to \S+/(\S+) failed: cache mode is 'only-if-cached'`), "", []string{"npm", "npx", "node"}, "npm"},
}

var goDownload = pattern.New(`^go: downloading (\S+) v`)

// missingPackages finds that dependencies are not installed.
func missingPackages(c *command) *proposal.Cause {
	if !c.isReliable() {
		return nil
	}
	for _, s := range signatures {
		line, m := c.findLine(s.line)
		if m == nil || !c.hasLineWith(s.also) || !c.hasStarted(s.programs...) {
			continue
		}
		subject := lastOf(m)
		if s.registry == "go" {
			if !c.goOnly() {
				return nil
			}
			if _, m := c.findLine(goDownload); subject == "" {
				subject = lastOf(m)
			}
		}
		return packagesCause(s.registry, subject, line)
	}
	if cause := missingModule(c); cause != nil {
		return cause
	}
	return missingImport(c)
}

// lastOf returns the group of a match, or "" if its pattern has none.
func lastOf(m []string) string {
	if len(m) < 2 {
		return ""
	}
	return m[1]
}

// goOnly reports whether nothing is wrong with the project's go.mod and go.sum.
func (c *command) goOnly() bool {
	return !c.hasLineWith("no required module provides package") && !c.hasLineWith("missing go.sum entry") &&
		!c.hasLineWith("is not in std")
}

var (
	requireLine = pattern.New(`^\s*(?:Uncaught )?(?:error: ['"|]?-?)?(?:\w*Error(?: \[\w+\])?: )?Cannot find (?:module|package) '([^']*)'`)
	packageName = pattern.New(`^((?:@[a-z0-9~-][a-z0-9._~-]*/)?[A-Za-z0-9~-][A-Za-z0-9._~-]*)(?:/[A-Za-z0-9._/~-]*)?$`)
)

// ownFolders are first parts of names that bundlers resolve in the project itself.
var ownFolders = []string{"src", "lib", "app", "test", "tests", "dist", "build", "out", "server", "client", "utils",
	"components", "shared"}

// missingModule finds a package of Node.js that is not installed. A path, or a name that
// can belong to the project itself, is the pull request's.
func missingModule(c *command) *proposal.Cause {
	var first *proposal.Cause
	for _, line := range c.lines {
		m := requireLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		name := packageName.FindStringSubmatch(m[1])
		if name == nil || slices.Contains(ownFolders, name[1]) || strings.HasPrefix(name[1], "~") {
			return nil
		}
		resolved := strings.Contains(line, "' imported from ") || strings.Contains(line, "' from '") ||
			c.hasLineWith("Require stack:")
		if first == nil && resolved {
			first = packagesCause("npm", name[1], line)
		}
	}
	if first == nil || !c.hasStarted("node", "npm", "npx", "pnpm", "yarn") {
		return nil
	}
	return first
}

var (
	importLine = pattern.New(`^(?:E\s+)?ModuleNotFoundError: No module named '([A-Za-z_][A-Za-z0-9_]*)(?:\.[A-Za-z0-9_.]+)?'$|^\S*python[0-9.]*: No module named ([A-Za-z_][A-Za-z0-9_]*)$`)
	anyImport  = pattern.New(`No module named `)
	managed    = pattern.New(`^(?:error|\S+): externally-managed-environment$`)
)

// missingImport finds a Python module that is not installed. A module that is not in
// wellKnown may be the pull request's.
func missingImport(c *command) *proposal.Cause {
	if !c.hasStarted("python", "pip", "pytest", "py.test", "tox", "nox") {
		return nil
	}
	if line, m := c.findLine(managed); m != nil {
		cause := packagesCause("pypi", "", line)
		cause.Reason, cause.Advice = noEnvironment,
			"A proposal can make one: `python3 -m venv /tmp/venv`, then `/tmp/venv/bin/pip install …`."
		return cause
	}
	var first *proposal.Cause
	for _, line := range c.lines {
		m := importLine.FindStringSubmatch(line)
		switch {
		case m == nil && !anyImport.MatchString(line):
		case m == nil || !slices.Contains(wellKnown, m[1]+m[2]):
			return nil
		case first == nil:
			first = packagesCause("pypi", m[1]+m[2], line)
		}
	}
	return first
}

// wellKnown are modules that a project has from elsewhere. Words that a project may use
// for a module of its own are not among them.
var wellKnown = strings.Fields(`
	aiofiles aiohttp alembic anyio apscheduler arrow asgiref asyncpg attr attrs babel bcrypt black boto boto3 botocore bs4
	cachetools celery certifi cffi chardet charset_normalizer click cloudpickle colorama cryptography cv2
	cython dask dateutil django docutils dotenv execnet faker fastapi filelock flake8 flask flask_cors
	flask_sqlalchemy freezegun gevent google graphene greenlet grpc gunicorn h11 h5py httpcore httptools httpx hypothesis
	idna importlib_metadata iniconfig isort itsdangerous jinja2 jmespath joblib jsonschema jwt kombu kubernetes lxml mako
	markupsafe marshmallow matplotlib more_itertools moto msgpack multidict mypy MySQLdb nacl
	networkx nltk nox numba numpy oauthlib odoo openai opentelemetry orjson packaging pandas paramiko passlib pexpect PIL
	playwright pluggy polars poetry pre_commit prometheus_client protobuf psutil psycopg psycopg2 pyarrow pyasn1 pycparser
	pydantic pydantic_core pydantic_settings pygments pylint pymongo pymysql pyparsing pyspark pytest pytest_asyncio
	pytest_cov pytest_django pytest_mock pytz redis requests requests_mock rest_framework rich ruamel ruff
	scipy seaborn selenium sentry_sdk setuptools_scm setuptools six sklearn sniffio sortedcontainers sphinx sqlalchemy
	starlette structlog sympy tabulate tenacity tensorflow tiktoken tomli tomlkit torch torchvision tornado tox tqdm
	transformers trio twisted typer typing_extensions tzlocal ujson urllib3 uvicorn uvloop virtualenv voluptuous watchdog
	websockets werkzeug wheel wrapt xarray xmltodict yaml yarl zmq zstandard`)
