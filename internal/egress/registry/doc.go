// SPDX-License-Identifier: Apache-2.0

// Package registry resolves the entries "registry:go", "registry:npm" … of a plan on this host:
// the hosts that packages come from, and the configuration that makes the tools in the sandbox
// use the same hosts.
//
// # Where hosts come from
//
// The host's own tools print their configuration. They run in an otherwise empty directory with
// the operator's HOME, never in the workspace. So a company's mirror works without any policy,
// and a pull request's .npmrc, pip.conf or go.env has no effect. A tool that exists and does
// not answer is an error, not a reason to use another host. This package names hosts itself
// (public.go) only if a tool cannot print them.
//
//	go              go env: GOPROXY, GOSUMDB
//	npm             npm config: registry and @scope:registry, and tokens in its user's file
//	pypi            pip config list: index-url, extra-index-url
//	crates          source.crates-io and what replaces it, in cargo's config.toml
//	maven           mirrors in settings.xml
//	rubygems        gem sources
//	apt             apt-get indextargets
//	github-releases GITHUB_SERVER_URL, as the runner sets it
//
// All others are rows of policies.Registries: the paths of the public registry's protocol, or the same paths of
// the server that a variable of the operator names. No credential is found for them.
//
// # Companions
//
// An index may send its clients to another host for the files. Mirrors rarely do, and are
// assumed to serve both from one origin: for a pypi index at …/simple or …/+simple and a crates
// index at …/index, that is the directory above. Go looks for its checksum database through the
// proxy first and then at the database's own host, so both are origins. The public indexes'
// companions are in public.go. If a mirror redirects to another host, the request is refused,
// and the refusal names the host, so that the plan can list it separately.
//
// # What stays outside the sandbox
//
// A user name and password in a URL, npm's tokens, Maven's servers and .netrc entries for an
// https origin are returned as Credentials for the gateway; no part of them is in Env or Files.
// Credentials stored in other ways (credential helpers, Maven's encrypted passwords, cargo's
// tokens, apt's auth.conf, client certificates) are not found, and neither is a proxy between a
// tool and its registry. apt does not report which keys an archive is signed with: the sandbox
// trusts only the keys of Debian's and Ubuntu's own archives, so archives with other keys do
// not verify.
//
// With a credential at the gateway, a command that was granted the registry can read everything
// there that the operator can: give the runner a credential with no more access than it should
// have. A token that is part of a URL's path cannot be distinguished from a path and goes into
// the sandbox.
//
// This package does not decide requests: policy limits them to GET and HEAD.
package registry
