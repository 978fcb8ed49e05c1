# docker compose config checks compose files and prints what they come to. It is the only use of docker: all others need a
# service. What else the files make it start or fetch, it cannot: options.txt lists its plugin alone, and there is no network.
package fumehood.command

import data.fumehood.lib

# METADATA
# title: docker compose config may check and print compose files of the workspace
# custom:
#   rule: compose.config
#   match: [
#     "docker compose config", "docker compose -f compose.yaml -f compose.dev.yaml config --quiet", "docker-compose -f docker-compose.yml config -q",
#     "docker compose --env-file .env.test --profile dev -p x config --format json", "docker compose --project-directory=deploy config --services",
#     "docker compose -f - config < compose.yaml", "docker compose config --no-interpolate web", "/usr/bin/docker-compose config --hash '*'"
#   ]
#   not_match: [
#     "docker compose up", "docker compose", "docker config ls", "docker -H tcp://203.0.113.9 compose config", "docker --context x compose config",
#     "docker --config x compose config", "docker compose config -o .git/hooks/x", "docker compose config --output=x", "docker compose config -qo x",
#     "docker compose config --resolve-image-digests", "docker compose config --lock-image-digests", "docker compose -f oci://x/y config",
#     "docker compose -f https://x.example/c.yml config", "docker compose -f git@x.example:y.git config", "docker compose -f github.com/x/y config",
#     "docker compose -p config up", "docker compose -f 'x\n-p' up config", "docker compose -f \"$f\" config", "ls | xargs docker compose config",
#     "docker-compose -H x config", "docker-compose --context x config", "podman compose config", "./docker compose config"
#   ]
allow contains {"rule": "compose.config"} if composing

# METADATA
# title: Commands with docker compose config may start docker and its compose plugin
# custom:
#   rule: grant.compose
#   grants: ["docker compose config -q", "docker-compose config && ls"]
#   not_grants: ["cat compose.yaml"]
exec contains {"rule": "grant.compose", "kind": "compose"} if composing

composing if {
	input.command.place in found
	input.command.static
	not input.command.loose
	lib.composes(input.command.program, input.command.argv)
}
