# ruby, perl, php and lua run code from the text and the workspace. Modules, settings and
# plugins that their options load must come from the workspace and open no connection.
package fumehood.command

import data.fumehood.lib

deny contains lib.denial("code.module", sprintf("%s loads a module that reaches the network", [word]), "remove it; if hosts were granted, use curl") if {
	input.command.tool in socketed
	some word in input.command.argv
	regex.match(network_module_option, word)
}

network_module_option := concat("", [
	`^-(M|m)?(r|M|m|l)? ?(LWP|IO::Socket|HTTP::|Net::|Socket|WWW::|Mojo|socket|ssl|luasocket|cqueues`,
	`|net/|open-uri|un$|drb|webrick)`,
])

socketed := {
	"perl", "ruby", "php", "lua", "luajit", "julia", "R", "Rscript", "tclsh", "elixir", "erl", "deno", "bun", "scala", "swift", "dart", "ocaml",
	"runghc", "crystal",
}

# METADATA
# title: One-liners must not reach the network
# custom:
#   rule: code.socket
#   severity: medium
#   category: network
#   retry: never
#   match: [
#     "php -r 'fsockopen(\"203.0.113.9\",80);'", "perl -e 'use IO::Socket; 1'", "ruby -e 'require \"socket\"; TCPSocket.new(\"x\",1)'",
#     "perl -e 'use Socket; socket(S,PF_INET,SOCK_STREAM,6)'", "lua -e 'require(\"socket\").tcp()'", "luajit -e 's=require \"socket.http\"'",
#     "julia -e 'using Sockets; connect(\"x\", 80)'", "julia -e 'download(\"x\")'", "Rscript -e 'socketConnection(\"x\")'",
#     "elixir -e ':gen_tcp.connect(\"x\", 80, [])'", "deno eval 'fetch(\"x\")'"
#   ]
#   not_match: [
#     "lua -e 'print(1)'", "julia -e 'println(1)'", "Rscript -e 'testthat::test_dir(\"tests\")'", "perl -ne 'print if /socket/' a.log",
#     "ruby -e 'puts 1'", "php -r 'echo 1;'"
#   ]
deny contains lib.denial(
	"code.socket",
	"the code opens a connection that its text does not name",
	"remove the connection; if hosts were granted, use curl",
) if {
	input.command.tool in socketed
	some word in input.command.argv
	regex.match(network_code, word)
}

network_code := concat("", [
	`\buse\s+(Socket|Net|LWP|WWW|Mojo)\b|\bsocket\s*\(|\bsocket\.(tcp|udp|http|connect|core)`,
	`|require\s*\(?\s*.(socket|ssl|cqueues|http\.)|\b(using|import)\s+(Sockets|HTTP|Downloads`,
	`|LibCURL)\b|\bdownload\s*\(|download\.file|socketConnection|\bmake\.socket|\burl\s*\(\s*.(https?`,
	`|ftp)|gen_(tcp|udp)|\bhttpc\b|\bfetch\s*\(|Deno\.(connect|listen)|Bun\.(connect|listen|serve)`,
	`|URLSession|HttpClient|fromURL|Unix\.(socket|connect)|Network\.Socket|curl_exec|fsockopen`,
	`|stream_socket|curl_init|file_get_contents\(.https?:|IO::Socket|LWP::|HTTP::Tiny|Net::(HTTP|FTP`,
	`|SSH|SMTP)|TCP(Socket|Server)|UDPSocket|open-uri|URI\.open|require .socket|Socket\.(tcp|new)`,
])

# METADATA
# title: php settings that load code are denied
# custom:
#   rule: code.setting
#   severity: medium
#   category: code
#   match: ["php -d auto_prepend_file=/tmp/x a.php", "php -d extension=./x.so a.php", "vendor/bin/phpunit -d auto_prepend_file=x"]
#   not_match: ["php -d memory_limit=-1 vendor/bin/phpunit", "php -l a.php"]
deny contains lib.denial("code.setting", sprintf("%s loads code", [word]), "remove the setting") if {
	input.command.tool in {"php", "phpunit", "composer", "pest", "paratest"}
	some i, word in input.command.argv
	input.command.argv[i - 1] == "-d"
	regex.match(php_code_setting, word)
}

php_code_setting := concat("", [
	`^(auto_|extension|zend_extension|disable_|open_basedir|allow_url|include_path|sys_temp|error_log`,
	`|sendmail|opcache\.preload)`,
])

# METADATA
# title: Test tools load only files in the workspace and known plugins
# custom:
#   rule: code.require
#   severity: medium
#   category: code
#   match: ["rubocop --format Evil::F --require=evil", "rspec --require=evil", "mocha --require evil"]
#   not_match: [
#     "rubocop --require rubocop-rails", "rspec --require spec_helper", "mocha --require ts-node/register", "mocha --require ./test/setup.js",
#     "rspec -r ./spec/x.rb"
#   ]
deny contains lib.denial("code.require", sprintf("%s is neither a file in the workspace nor a known plugin", [value]), "require a file in the workspace") if {
	input.command.program in {"rubocop", "rspec", "mocha", "rake", "cucumber"}
	some i, word in input.command.argv
	split(word, "=")[0] == "--require"
	value := option_value(i, word)
	not regex.match(known_required_module, value)
}

# option_value is the value of the option in the word at i.
option_value(_, word) := concat("=", array.slice(split(word, "="), 1, 99)) if contains(word, "=")

option_value(i, word) := input.command.argv[i + 1] if {
	not contains(word, "=")
	i + 1 < count(input.command.argv)
}

known_required_module := concat("", [
	`^\.?/|^(rubocop-[\w-]+|spec_helper|rails_helper|test_helper|ts-node.*|@babel/register|tsx.*`,
	`|esbuild-register|source-map-support.*|should|chai.*|jsdom-global.*|rspec.*|simplecov.*`,
	`|[\w./-]+\.(rb|js|ts|mjs|cjs))$`,
])
