# python3, pytest, tox and pip may run the repository's code and install what it names. They
# load no plugin by name, run no module that serves, fetches or hides code, and
# install nothing from an address.
package fumehood.command

import data.fumehood.lib

program_option contains word if {
	input.command.program in {"pytest", "py.test"}
	some word in input.command.argv
	regex.match(`^-p`, word)
	not regex.match(`^-p$|^-p(no:)?\w+$`, word)
}

program_option contains "-p" if {
	input.command.program in {"pytest", "py.test"}
	some i, "-p" in input.command.argv
	not regex.match(`^(no:[\w.]+|xdist|pytest_\w+|asyncio|randomly|cov|pytester|_?\w*tests?[\w.]*)$`, input.command.argv[i + 1])
}

program_option contains word if {
	input.command.program in {"tox", "nox"}
	some word in input.command.argv
	regex.match(`^(-x|--override|-c|-f|--noxfile)`, word)
	word != "-c"
}

program_option contains word if {
	input.command.program == "python3"
	some i, word in input.command.argv
	word == "-m"
	input.command.argv[i + 1] in {"http.server", "pty", "code", "smtpd", "webbrowser", "pdb", "SimpleHTTPServer", "idlelib", "turtledemo", "ensurepip", "xmlrpc.server", "asyncio"}
}

# METADATA
# title: Modules that fetch, publish, serve or hide code
# custom:
#   rule: code.module
#   match: ["python3 -m twine upload dist/*", "python3 -m telnetlib x", "coverage run -m http.server", "python3 -m pydoc -b", "ruby -run -e httpd .", "python3 setup.py upload", "python3 setup.py install", "perl -MLWP::Simple -e 1", "ruby -rsocket -e 1", "python3 -m runpy x"]
#   not_match: ["python3 -m pytest", "python3 -m pip install -e .", "python3 -m pip list", "python3 setup.py build_ext --inplace", "perl -MJSON::PP -e 1", "python3 -m json.tool x.json"]
deny contains lib.denial("code.module", sprintf("%s %s fetches, publishes, serves or hides code", [input.command.program, word]), "build, test and check what the repository holds") if {
	input.command.program in {"python3", "coverage", "pytest", "uv", "poetry", "trace"}
	some i, word in input.command.argv
	input.command.argv[i - 1] == "-m"
	regex.match(`^(twine|flit|telnetlib|ftplib|poplib|imaplib|smtplib|nntplib|smtpd|http\.server|wsgiref.*|socketserver|webbrowser|pydoc|runpy|pty|code|idlelib.*|ensurepip|antigravity|turtledemo|SimpleHTTPServer|xmlrpc.*|asyncio|pip\._internal.*|easy_install|site|zipapp|venv|virtualenv)$`, word)
	not word == "venv"
}

deny contains lib.denial("code.module", "a virtual environment is made in the workspace or under /tmp", "name such a folder") if {
	input.command.program == "python3"
	input.command.argv[0] == "-m"
	input.command.argv[1] in {"venv", "virtualenv"}
	some w in input.command.operands
	w.place in {"outside", "secret", "git", "home", "control"}
}

deny contains lib.denial("code.module", sprintf("setup.py %s publishes or installs", [word]), "use python3 setup.py build_ext --inplace, or pip install -e .") if {
	input.command.program == "python3"
	some i, word in input.command.argv
	word in {"upload", "register", "install", "bdist_wininst", "upload_docs", "easy_install", "alias", "saveopts", "setopt"}
	some j, script in input.command.argv
	j < i
	endswith(script, "setup.py")
}

deny contains lib.denial("code.publish", "pip installs only what the repository names", "use pip install -e . or pip install -r requirements.txt") if {
	input.command.program in {"pip", "pip3", "uv"}
	some word in input.command.argv
	regex.match(`^(git|hg|svn|bzr)\+|://|^--(user|target|prefix|root|index-url|extra-index-url|trusted-host|global-option|build-option|config-settings|proxy|python)(=|$)|^-(i|t)$`, word)
}

deny contains lib.denial("code.package", "pip fetches from an address, and there is no network", "use pip install -e .") if {
	input.command.program == "python3"
	"pip" in input.command.argv
	some word in input.command.argv
	contains(word, "://")
	not networked
}

# pip through python -m is pip.
deny contains lib.denial("code.package", "pip fetches a package by name, and there is no network", "use pip install -e . or pip install -r requirements.txt") if {
	input.command.program == "python3"
	some i, word in input.command.argv
	input.command.argv[i - 1] == "-m"
	word in {"pip", "pip3"}
	input.command.argv[i + 1] in {"install", "download", "wheel", "search", "config", "index"}
	some j, named in input.command.argv
	j > i + 1
	not regex.match(`^([-./].*)?$|\.(txt|in|whl|tgz|tar\.gz|toml)$`, named)
	not option_argument(j)
	not pip_fetches(i + 1)
}

pip_fetches(verb) if {
	networked
	input.command.argv[verb] in {"install", "download", "wheel"}
}

deny contains lib.denial("code.package", "uv pip installs by name, and there is no network", "use uv sync --frozen") if {
	input.command.program == "uv"
	input.command.argv[0] == "pip"
	input.command.argv[1] in {"install", "compile", "download"}
	not networked
}

deny contains lib.denial("code.option", sprintf("%s loads a plugin by name", [word]), "leave the option out, or name a plugin of the repository in its configuration") if {
	input.command.program in {"pytest", "py.test", "python3", "coverage", "poetry", "uv", "tox"}
	some word in input.command.argv
	pytesting
	regex.match(`^-p[a-zA-Z]`, word)
	not regex.match(`^-pno:`, word)
}

pytesting if {
	some word in ({input.command.program} | {w | some w in input.command.argv})
	word in {"pytest", "py.test"}
}

deny contains lib.denial("code.option", "pytest loads a plugin by name", "leave the option out") if {
	not input.command.program in {"pytest", "py.test"}
	pytesting
	some i, "-p" in input.command.argv
	not regex.match(`^(no:[\w.]+|xdist|pytest_\w+|asyncio|randomly|cov|pytester)$`, input.command.argv[i + 1])
}
