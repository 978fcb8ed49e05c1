// SPDX-License-Identifier: Apache-2.0

// Package registry says what the entries "registry:go", "registry:npm" … of a plan
// stand for on this host: which hosts packages come from, and what the tools in the
// sandbox must be told so that they use the same ones.
//
// # Where names come from
//
// The host's own tools are asked, in a folder that holds nothing of anybody's and with
// the operator's HOME, never in the workspace: a company's mirror works without a word
// of policy, and a pull request's .npmrc, pip.conf or go.env says nothing here. A tool
// that is there and does not answer is an error, not a reason to take another host.
// Hosts are named by this package (public.go) only where a tool has no such question.
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
// # Companions
//
// An index may send its clients to another host for the files. A mirror hardly does, and
// is taken to serve both from one origin: for an index of pypi at …/simple or …/+simple
// and one of crates at …/index that is the folder above. A checksum database of Go is asked for
// through the proxy first and then at the host of its own name, so both are origins. The
// public indexes' companions are in public.go. What a mirror sends elsewhere is refused,
// and the refusal names the host, for an entry of its own in the plan.
//
// # What stays outside
//
// A name and password in a URL, npm's tokens, Maven's servers and what .netrc holds for
// an https origin are given back as Credentials for the gateway; nothing of them is in
// Env or Files. Credentials that a tool keeps in another way (credential helpers, Maven's
// encrypted passwords, cargo's tokens, apt's auth.conf, client certificates) are not
// found, and neither is a proxy that stands between a tool and its registry. apt does not
// say by which keys an archive is signed: inside, those of Debian's and Ubuntu's own
// archives are trusted, and one of somebody else's does not verify.
//
// With a credential at the gateway, a command that was granted the registry may read
// there what the operator may: give the runner one that reads no more than it should. A
// token that is part of a URL's path cannot be told from a path and goes inside.
//
// It does not judge requests: that only GET and HEAD pass is policy's.
package registry
