package fumehood.lib

# composes is true for words with which docker and docker-compose only check and print compose files: they need no daemon and
# no registry, and write no file. Whose the named files are is decided by their places.
composes(program, words) if {
	every word in words { not regex.match(`(?s)^(.*\n.*|(-f|--file)?=?github\.com/.*)$`, word) } # a repository there is fetched
	regex.match(compose_words[program], concat("\n", words))
}

compose_words := {"docker": concat("", [`^compose\n`, compose_config]), "docker-compose": concat("", [`^(compose\n)?`, compose_config])}

compose_config := concat("", [
	`(((-f[\n=]?|--(file|env-file|project-directory)[\n=])(-|[\w./][\w./ +-]*)`,
	`|(-p[\n=]?|--(project-name|profile)[\n=])(\w[\w.-]*|\*)`,
	`|--ansi[\n=](never|always|auto)|--no-ansi|--compatibility)\n)*config`,
	`(\n(-q|--(quiet|services|images|volumes|profiles|environment)`,
	`|--no-(interpolate|normalize|path-resolution|consistency)`,
	`|--format[\n=](json|yaml)|--hash[\n=](\w[\w.-]*|\*)|\w[\w.-]*))*$`,
])
