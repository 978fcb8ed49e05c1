# python3, pytest, tox and pip may run the repository's code and install what it names. They
# must not load plugins by name, run modules that serve, fetch or hide code, or install
# from a URL.
package fumehood.command

import data.fumehood.lib

program_option contains module if {
	some module in modules
	module in {"http.server", "pty", "code", "smtpd", "webbrowser", "pdb", "SimpleHTTPServer", "idlelib", "turtledemo", "ensurepip", "xmlrpc.server", "asyncio"}
}

# modules are the modules that an interpreter is to run. pytest's -m is something else.
# cProfile, trace, pdb and similar modules run another one, which their own option -m or --module
# announces: any word after it may be its name.
modules contains trim_main(o.value) if {
	some o in input.command.options
	o.name in {"-m", "--module"}
	not input.command.tool in {"pytest", "py.test"}
	not page_server
}

modules contains trim_main(name) if {
	input.command.program in {"python3", "coverage"}
	not input.command.tool in {"pytest", "py.test"}
	not page_server
	some i, word in input.command.argv
	i > 0
	regex.match(`^(-[a-zA-Z]*m|--mo).*`, word)
	some j, name in array.concat(input.command.argv, [regex.replace(word, `^-[a-zA-Z]*?m`, "")])
	j > i
}

# trim_main is a module without the submodule that runs it.
trim_main(module) := regex.replace(module, `(\.__main__)+$`, "")

# page_server is true for a server of the workspace's files on localhost, such as for a
# browser. Unlike http.server in general, it runs no script of the workspace (--cgi).
page_server if {
	input.command.program == "python3"
	input.command.static
	regex.match(local_http_server, concat("\n", input.command.argv))
	some word in input.command.argv
	word in {"-b", "--bind"}
}

local_http_server := concat("", [
	`^-m\nhttp\.server(\n\d{1,5})?(\n(-b|--bind)\n(127\.0\.0\.1|localhost|::1)|\n(-d`,
	`|--directory)\n(/tmp/|/workspace/`,
	`|\./)?\w[\w-]*(\.[\w-]+)*(/\w[\w-]*(\.[\w-]+)*)*/?)+(\n\d{1,5})?$`,
])

# METADATA
# title: Modules that fetch, publish, serve or hide code are denied
# custom:
#   rule: code.module
#   severity: medium
#   category: network
#   match: [
#     "python3 -m twine upload dist/*", "python3 -m telnetlib x", "coverage run -m http.server", "python3 -m pydoc -b", "ruby -run -e httpd .",
#     "python3 setup.py upload", "python3 setup.py install", "perl -MLWP::Simple -e 1", "ruby -rsocket -e 1", "python3 -m runpy x",
#     "python3 -m cProfile -m http.server", "python3 -m cProfile -mo p.out http.server", "python3 -m trace -t --module http.server",
#     "python3 -mprofile -mhttp.server", "python3 -m http.server.__main__", "python3 -X dev -m kernprof -l -m pty", "coverage run --branch -m http.server",
#     "python3 -mhttp.server", "poetry run python -m http.server", "python3 -m http.server 8000 --directory dist",
#     "python3 -m http.server --cgi --bind 127.0.0.1", "python3 -m http.server --bind 0.0.0.0",
#     "python3 -m http.server --bind 127.0.0.1 --directory /etc"
#   ]
#   not_match: [
#     "python3 -m pytest", "python3 -m pip install -e .", "python3 -m pip list", "python3 setup.py build_ext --inplace", "perl -MJSON::PP -e 1",
#     "python3 -m json.tool x.json", "python3 -m cProfile -s tottime -m pytest", "python3 -m pytest -m site", "python3 -m trace -c --module pkg.main",
#     "python3 -m http.server 8000 --bind 127.0.0.1", "python3 -m http.server -b localhost -d dist/site 8080"
#   ]
deny contains lib.denial(
	"code.module",
	module_reason(word),
	module_instead(word),
) if some word in refused_modules

refused_modules contains word if {
	input.command.program in lib.runners
	some word in modules
	regex.match(python_refused_module, word)
	not word == "venv"
}

module_reason(word) := "http.server listens on every address, or serves other files than those of the workspace and /tmp" if {
	serves_files(word)
} else := sprintf("%s %s fetches, publishes, serves or hides code", [input.command.program, word])

module_instead(word) := "serve the workspace on the loopback address: `python3 -m http.server 8000 --bind 127.0.0.1`" if {
	serves_files(word)
} else := "build, test and check the repository"

serves_files(word) if {
	word == "http.server"
	input.command.program == "python3"
}

python_refused_module := concat("", [
	`^(twine|flit|telnetlib|ftplib|poplib|imaplib|smtplib|nntplib|smtpd|http\.server|wsgiref.*`,
	`|socketserver|webbrowser|pydoc|runpy|pty|code|idlelib.*|ensurepip|antigravity|turtledemo`,
	`|SimpleHTTPServer|xmlrpc.*|asyncio|pip\._internal.*|easy_install|site|zipapp|venv|virtualenv)$`,
])

deny contains lib.denial("code.module", "a virtual environment must be in the workspace or under /tmp", "name a directory there") if {
	input.command.program == "python3"
	input.command.argv[0] == "-m"
	input.command.argv[1] in {"venv", "virtualenv"}
	some w in input.command.operands
	w.place in {"outside", "secret", "git", "home", "control"}
}

deny contains lib.denial(
	"code.module",
	sprintf("setup.py %s publishes or installs", [word]),
	"build it in place: `python3 setup.py build_ext --inplace`, or `pip install -e .`",
) if {
	input.command.program == "python3"
	some i, word in input.command.argv
	word in {"upload", "register", "install", "bdist_wininst", "upload_docs", "easy_install", "alias", "saveopts", "setopt"}
	some j, script in input.command.argv
	j < i
	endswith(script, "setup.py")
}

deny contains lib.denial("code.package", "uv pip installs by name, and there is no network", "install from the lock file: `uv sync --frozen`") if {
	input.command.program == "uv"
	input.command.argv[0] == "pip"
	input.command.argv[1] in {"install", "compile", "download"}
	not regex.match(own_files, joined)
	not networked
}

# own_files matches uv pip install of the project and of its files of requirements.
own_files := concat("", [
	`^pip\ninstall(\n(--no-deps|-q|--quiet|--system|--offline|--no-build-isolation`,
	`|((-e|--editable)\n)?\.(\[[\w,-]+\])?`,
	`|(-r|-c|--requirement|--constraint)\n\w[\w-]*([./][\w-]+)*\.(txt|in|toml)))+$`,
])

deny contains lib.denial(
	"code.option",
	sprintf("pytest loads the plugin %s by name", [o.value]),
	"remove the option, or name the plugin in the repository's configuration",
) if {
	input.command.tool in {"pytest", "py.test"}
	some o in input.command.options
	o.name == "-p"
	o.static
	not regex.match(`^(no:[\w.]+|xdist|pytest_\w+|asyncio|randomly|cov|pytester|_?\w*tests?[\w.]*)$`, o.value)
}

deny contains lib.denial("code.option", sprintf("the pytest setting %s may load code", [o.value]), "use the repository's setting") if {
	input.command.tool in {"pytest", "py.test"}
	some o in input.command.options
	o.name == "--override-ini"
	o.static
	not regex.match(harmless_pytest_setting, o.value)
}

harmless_pytest_setting := concat("", [
	`^(addopts=((-q|-v+|-s|-x|-ra?)\s*)*|(log_cli|log_\w+|xfail_strict|junit_\w+|console_output_style`,
	`|cache_dir|asyncio_\w+|timeout\w*|markers|filterwarnings|testpaths|norecursedirs|doctest_\w+`,
	`|minversion|truncation\w*|tmp_path_retention\w*|verbosity\w*|faulthandler_timeout`,
	`|empty_parameter_set_mark|strict\w*|consider_namespace_packages|enable_assertion_pass_hook)=.*)$`,
])
