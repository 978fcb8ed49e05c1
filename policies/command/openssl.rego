# openssl may inspect a server's TLS when hosts were granted. It must not load code or
# write files. judged.rego has the rules for its other verbs.
package fumehood.command

import data.fumehood.lib

# METADATA
# title: openssl may inspect a server's TLS when hosts were granted
# custom:
#   rule: judged.client
#   reaches: ["openssl s_client -connect api.example.com:443 -servername evil.example", "openssl s_client -connect api.example.com:443 -noservername -brief"]
#   not_reaches: [
#     "openssl s_client -engine ./x -connect a:1", "openssl s_server -port 1", "openssl s_client -connect a:1 -keylogfile x",
#     "openssl s_client -connect a:1 -provider-path ./x"
#   ]
deny contains lib.denial("judged.client", sprintf("openssl's %s loads code or writes a file", [word]), "remove it") if {
	tls_client
	some word in input.command.argv
	regex.match(openssl_loading_option, word)
}

openssl_loading_option := concat("", [
	`^--?(engine|ssl_client_engine|provider|provider-path|propquery|config|keylogfile|sess_out|rand`,
	`|writerand|cert|key|pass|CAstore|psk_session|msgfile|early_data)$`,
])

tls_client if {
	input.command.program == "openssl"
	input.command.argv[0] == "s_client"
	networked
}
