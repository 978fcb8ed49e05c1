// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/fumehood/fumehood/pkg/internal/document"
)

// The words for setup and registries.
const (
	auto = "auto"
	none = "none"
)

// configShape is the whole document.
var configShape = document.Shape{
	Kind: document.Object, Want: "an object with the field schema and settings",
	Synonyms: map[string]string{
		"install": "setup", "prepare": "setup", "commands": "setup", "steps": "setup", "before": "setup", "dependencies": "setup",
		"registry": "registries", "root": "rootfs", "image": "rootfs", "toolchains": "tools", "path": "tools", "paths": "tools",
		"databases": "services", "time": "timeout", "wall": "timeout", "policies": "policy", "rules": "policy", "caching": "cache",
		"allowed-domains": "network", "timeout-minutes": "timeout",
	},
	Fields: []document.Field{
		document.Required("schema", &document.Shape{Kind: document.Text, Max: 64, Choice: []string{Schema}, Want: strconv.Quote(Schema),
			Doc: "The version of this format."}),
		document.Optional("setup", &setupShape),
		document.Optional("registries", &registriesShape),
		document.Optional("rootfs", &rootfsShape),
		document.Optional("tools", document.ListOf(&toolShape, "Directories of the host to show read-only inside the sandbox, in addition to /usr, and names of toolchains: "+strings.Join(toolchains, ", ")+".")),
		document.Optional("services", document.ListOf(&serviceShape, "Servers of the host to start inside the sandbox, on loopback: "+strings.Join(services, ", ")+".")),
		document.Optional("limits", limitsShape()),
		document.Optional("timeout", document.Duration("The maximum time of the whole run.")),
		document.Optional("policy", policyShape()),
		document.Optional("cache", &cacheShape),
		document.Optional("network", document.Network("Hosts that commands request, as in a plan. Policy grants them or not.")),
		document.Optional("checkout", &checkoutShape),
	},
}

var setupShape = document.Shape{
	Kind: document.List, Max: MaxCommands, Items: &commandShape,
	Want: `"auto", "none" or a list of commands`,
	Doc:  "What prepares the workspace before other commands run: auto (detected from lock files and manifests, the default), none, or a list of commands.",
	Or:   word(auto, none),
}

var commandShape = document.Shape{
	Kind: document.Object, Want: "a command: shell text, or an object with run or argv", Doc: "A command of the set-up phase.",
	Or: document.ShellText("Shell text."),
	Fields: []document.Field{
		document.Optional("run", document.ShellText("Shell text.")),
		document.Optional("argv", document.Argv("A program and its arguments, started without a shell.")),
		document.Optional("cwd", document.Inside("The directory to start in, relative to the workspace.")),
		document.Optional("env", document.Env("Requested environment variables.")),
		document.Optional("network", document.Network("Requested hosts and registries; the registries in force if left out.")),
		document.Optional("timeout", document.Duration("The maximum time of the command.")),
	},
	Extra: func(schema map[string]any) {
		schema["oneOf"] = []map[string]any{{"required": []string{"run"}}, {"required": []string{"argv"}}}
	},
}

var registriesShape = document.Shape{
	Kind: document.List, Max: document.MaxListed, Once: true, Items: &registryShape,
	Want: `"auto", "none" or a list of registries`,
	Doc:  "The package registries that set-up may read: auto (those that it needs, the default), none, or a list of " + strings.Join(document.Registries, ", ") + ". Policy must grant them, too.",
	Or:   word(auto, none),
}

var registryShape = document.Shape{Kind: document.Text, Max: 64, Choice: document.Registries, Unknown: document.UnknownRegistry}

var rootfsShape = document.Shape{
	Kind: document.Text, Max: document.MaxPath, Pattern: regexp.MustCompile(`^(host|dir:/.*)$`),
	Want: `"host", or "dir:" and an absolute path`, Doc: "The root file system of the sandbox: host (the host's tools, the default) or dir:PATH.",
	Valid: func(n *document.Node) string {
		if dir, ok := strings.CutPrefix(n.Value, "dir:"); ok && (path.Clean(dir) != dir || dir == "/") {
			return fmt.Sprintf("invalid value %s: want the plain path of a directory other than /", document.Quote(n.Value))
		}
		return ""
	},
}

// toolchains are the names that tools may list instead of a directory.
var toolchains = []string{"go", "node", "python", "rust", "java", "ruby", "php", "deno", "bun", "dotnet"}

var toolchainNames = map[string]string{
	"golang": "go", "nodejs": "node", "npm": "node", "python3": "python", "pyenv": "python", "cargo": "rust", "rustup": "rust",
	"jdk": "java", "maven": "java", "gradle": "java", ".net": "dotnet",
}

var toolShape = document.Shape{
	Kind: document.Text, Max: document.MaxPath, Pattern: regexp.MustCompile(`^(~?/.*|[A-Za-z0-9.+-]+)$`),
	Want:  "an absolute path, a path that begins with ~/, or one of " + quoted(toolchains),
	Valid: validTool,
}

// never are directories that hold secrets, devices or the sandbox's own files instead of
// tools. They are refused, with everything below them.
var never = []string{"/boot", "/dev", "/etc", "/proc", "/run", "/sys", "/tmp", "/var/run", "/var/lib/docker", "/workspace"}

// wide are directories that hold more than tools: they are refused, what is below them is not.
var wide = []string{"/", "~", "/home", "/root", "/mnt", "/srv", "/var", "/Users"}

// private are names of directories that hold credentials.
var private = []string{".ssh", ".aws", ".azure", ".config", ".docker", ".gnupg", ".kube", ".netrc", ".password-store", ".git"}

func validTool(n *document.Node) string {
	v := n.Value
	if !strings.ContainsRune(v, '/') {
		if slices.Contains(toolchains, v) {
			return ""
		}
		return unknown("toolchain", v, toolchains, toolchainNames)
	}
	under := func(dir string) bool { return v == dir || strings.HasPrefix(v, dir+"/") }
	parts := strings.Split(v, "/")
	switch {
	case path.Clean(v) != v && v != "~/":
		return fmt.Sprintf("invalid value %s: write the path without //, /./, .. and a final slash", document.Quote(v))
	case slices.Contains(wide, strings.TrimSuffix(v, "/")) || v == "/" || len(parts) == 3 && parts[1] == "home":
		return fmt.Sprintf("%s is too wide: name the directory of the tool", document.Quote(v))
	case slices.ContainsFunc(never, under):
		return fmt.Sprintf("%s cannot be shown: name the directory of a tool", document.Quote(v))
	case slices.ContainsFunc(parts, func(part string) bool { return slices.Contains(private, part) }):
		return fmt.Sprintf("%s may hold credentials and cannot be shown: name the directory of a tool", document.Quote(v))
	}
	return ""
}

var services = []string{"postgres", "redis", "mysql"}

var serviceShape = document.Shape{Kind: document.Text, Max: 64, Choice: services, Unknown: func(name string) string {
	return unknown("service", name, services, serviceNames)
}}

var serviceNames = map[string]string{"postgresql": "postgres", "pg": "postgres", "psql": "postgres", "valkey": "redis", "mariadb": "mysql"}

func limitsShape() *document.Shape {
	s := document.Limits()
	s.Doc = "Requested limits of each command. Policy may grant less."
	return s
}

func policyShape() *document.Shape {
	return document.Inside("A directory of the repository with Rego that may deny, ask and lower.")
}

var checkoutShape = document.Shape{
	Kind: document.Object, Want: "an object with submodules and lfs", Doc: "What CI fetches beside the commit, from the repository's server and without credentials in the sandbox.",
	Fields: []document.Field{
		document.Optional("submodules", &document.Shape{Kind: document.Boolean, Doc: "The files of submodules, at the pinned commits."}),
		document.Optional("lfs", &document.Shape{Kind: document.Boolean, Doc: "The files of Git LFS in place of their pointers."}),
	},
}

var cacheShape = document.Shape{
	Kind: document.Object, Want: "true, false or an object", Doc: "Whether dependencies are kept from run to run; an object means true.",
	Or: &document.Shape{Kind: document.Boolean},
	Fields: []document.Field{
		document.Optional("size", document.Size("The maximum size.")),
		document.Optional("files", document.ListOf(document.Inside(""), "Files of the repository whose content is part of the cache's key, in addition to lock files.")),
	},
}

func word(words ...string) *document.Shape {
	return &document.Shape{Kind: document.Text, Max: 64, Choice: words, Want: quoted(words) + " or a list"}
}

func unknown(what, name string, known []string, synonyms map[string]string) string {
	near := synonyms[strings.ToLower(name)]
	if near == "" {
		near = document.Nearest(strings.ToLower(name), known)
	}
	if near != "" {
		return fmt.Sprintf("unknown %s %s: did you mean %q?", what, document.Quote(name), near)
	}
	return fmt.Sprintf("unknown %s %s: known are %s", what, document.Quote(name), strings.Join(known, ", "))
}

func quoted(words []string) string {
	list := make([]string, len(words))
	for i, w := range words {
		list[i] = strconv.Quote(w)
	}
	return strings.Join(list, ", ")
}
