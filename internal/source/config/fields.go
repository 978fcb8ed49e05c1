// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/document"
	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/kit/valid"
	"github.com/fumehood/fumehood/internal/source/checkout"
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
		"databases": "services", "directories": "projects", "packages": "projects", "workspaces": "projects", "time": "timeout", "wall": "timeout", "policies": "policy", "rules": "policy", "caching": "cache",
		"timeout-minutes": "timeout",
	},
	Fields: []document.Field{
		document.Required("schema", &document.Shape{Kind: document.Text, Max: 64, Choice: []string{Schema},
			Want: strconv.Quote(Schema),
			Doc:  "The version of this format."}),
		document.Optional("setup", &setupShape),
		document.Optional("projects", document.ListOf(document.WorkspacePathShape(""),
			"Directories of the repository that detected set-up includes although no command touches them, such as documentation.")),
		document.Optional("registries", &registriesShape),
		document.Optional("rootfs", &rootfsShape),
		document.Optional("tools", document.ListOf(&toolShape,
			"Directories of the host that come first in PATH of the commands, each shown read-only with the toolchain that it belongs to.")),
		document.Optional("allow-tools", document.ListOf(&allowToolShape,
			"Programs of PATH that commands may use as tools that read files and print or write what they found. Policy can deny them.")),
		document.Optional("hide", document.ListOf(&hideShape,
			"Files and directories of the repository that commands do not see, in the work tree and in every commit: names, or paths from the top, with * for any text.")),
		document.Optional("services", document.ListOf(&serviceShape,
			"Servers of the host to start inside the sandbox, on loopback: "+strings.Join(services, ", ")+".")),
		document.Optional("limits", limitsShape()),
		document.Optional("timeout", document.DurationShape("The maximum time of the whole run.")),
		document.Optional("policy", policyShape()),
		document.Optional("cache", &cacheShape),
		document.Optional("compare-base", &compareBaseShape),
		document.Optional("results", &document.Shape{Kind: document.Text, Max: 16, Choice: ResultModes,
			Want: quoteWords(ResultModes),
			Doc:  "Whether kept results of earlier runs are used for commands that request it (default off). Only the flag --results write keeps any."}),
		document.Optional("layers", &layersShape),
		document.Optional("checkout", &checkoutShape),
		document.Optional("comment", &commentShape),
		document.Optional("review", &reviewShape),
	},
}

var commentShape = document.Shape{
	Kind: document.Object, Want: "an object with detail, length, mention and lines",
	Doc: "How much the pull request's comment shows, and whether a person who asked for a run is notified.",
	Fields: []document.Field{
		document.Optional("detail", &document.Shape{Kind: document.Text, Max: 16, Choice: Details,
			Want: quoteWords(Details),
			Doc:  "quiet (what needs attention, without the output of commands), normal (output is folded, the default) or full (the output of commands that need attention is open)."}),
		document.Optional("length", &document.Shape{Kind: document.Number, Low: MinComment, High: MaxComment,
			Integer: true,
			Want:    fmt.Sprintf("a number from %d to %d", MinComment, MaxComment),
			Doc:     "The maximum length, in UTF-16 units."}),
		document.Optional("mention", &document.Shape{Kind: document.Text, Max: 16, Choice: Mentions,
			Want: quoteWords(Mentions),
			Doc:  "none (the default) or requester (when a run ends, a new comment mentions the person whose comment requested it)."}),
		document.Optional("lines", &document.Shape{Kind: document.Text, Max: 16, Choice: Lines, Want: quoteWords(Lines),
			Doc: "none (the default) or linters (what linters and formatters report on lines that the pull request changes becomes review comments, with suggestions)."}),
	},
}

var reviewShape = document.Shape{
	Kind: document.Object, Want: "an object with paths, ignore, focus, severity, language and transcript",
	Doc: "Guidance for a model that fumehood review asks.",
	Fields: []document.Field{
		document.Optional("paths", document.ListOf(&patternShape,
			"Files and directories to review, by name, path or pattern (default all).")),
		document.Optional("ignore", document.ListOf(&patternShape, "Files and directories to leave out.")),
		document.Optional("focus", document.ListOf(&document.Shape{Kind: document.Text, Max: 500},
			"What the model should look at, each in a sentence.")),
		document.Optional("severity", &document.Shape{Kind: document.Text, Max: 16, Choice: valid.Severities,
			Want: quoteWords(valid.Severities),
			Doc:  "The lowest severity that is reported (default low)."}),
		document.Optional("language", &document.Shape{Kind: document.Text, Max: 64,
			Doc: "The language of findings (default English)."}),
		document.Optional("transcript",
			&document.Shape{Kind: document.Boolean,
				Doc: "Whether the texts of requests and answers, without secrets, are kept beside the review's log (default false)."}),
	},
}

var patternShape = document.Shape{
	Kind: document.Text, Max: document.MaxPath, Want: "a name, path or pattern",
	Valid: func(n *document.Node) string {
		if _, err := path.Match(n.Value, ""); err != nil {
			return fmt.Sprintf("invalid pattern %s", document.Quote(n.Value))
		}
		return ""
	},
}

var setupShape = document.Shape{
	Kind: document.List, Max: MaxCommands, Items: &commandShape,
	Want: `"auto", "none" or a list of commands`,
	Doc:  "What prepares the workspace before other commands run: auto (detected from lock files and manifests, the default), none, or a list of commands.",
	Or:   wordShape(auto, none),
}

var commandShape = document.Shape{
	Kind: document.Object, Want: "a command: shell text, or an object with run or argv",
	Doc: "A command of the set-up phase.",
	Or:  document.ShellText("Shell text."),
	Fields: []document.Field{
		document.Optional("run", document.ShellText("Shell text.")),
		document.Optional("argv", document.ArgvShape("A program and its arguments, started without a shell.")),
		document.Optional("cwd", document.WorkspacePathShape("The directory to start in, relative to the workspace.")),
		document.Optional("env", document.EnvShape("Requested environment variables.")),
		document.Optional("network", document.NetworkShape("Requested hosts and registries; the registries in force if left out.")),
		document.Optional("timeout", document.DurationShape("The maximum time of the command.")),
	},
	Extra: func(schema map[string]any) {
		schema["oneOf"] = []map[string]any{{"required": []string{"run"}}, {"required": []string{"argv"}}}
	},
}

var registriesShape = document.Shape{
	Kind: document.List, Max: document.MaxListed, Once: true, Items: &registryShape,
	Want: `"auto", "none" or a list of registries`,
	Doc: "The package registries that set-up may read: auto (those that it needs, the default), none, or a list of " +
		strings.Join(document.Registries, ", ") + ". Policy must grant them, too.",
	Or: wordShape(auto, none),
}

var registryShape = document.Shape{Kind: document.Text, Max: 64, Choice: document.Registries,
	Unknown: document.UnknownRegistry}

var rootfsShape = document.Shape{
	Kind: document.Text, Max: document.MaxPath, Pattern: rootfsValue,
	Want: `"host", "dir:", "oci:" or "oci-archive:" and an absolute path, "image:" and a reference with its digest, or "devcontainer"`,
	Doc:  "The root file system of the sandbox: host (the host's tools, the default), dir:PATH, image:REPOSITORY@sha256:DIGEST, oci:DIR or oci-archive:FILE (an OCI image layout), or devcontainer (the image of the repository's devcontainer.json).",
	Valid: func(n *document.Node) string {
		if !ValidRootfs(n.Value) {
			return fmt.Sprintf("invalid value %s: want the plain path of a directory or file other than /",
				document.Quote(n.Value))
		}
		return ""
	},
}

var rootfsValue = pattern.New(`^(host|dir:/.*|image:[^@\s]+@sha256:[0-9a-f]{64}|oci:/.*|oci-archive:/.*|devcontainer)$`)

// ValidRootfs reports whether value has the form of a root file system: see Config.Rootfs.
func ValidRootfs(value string) bool {
	if !rootfsValue.MatchString(value) {
		return false
	}
	_, dir, found := strings.Cut(value, ":/")
	if !found || strings.HasPrefix(value, "image:") {
		return true
	}
	dir, _, _ = strings.Cut("/"+dir, "@sha256:")
	return path.Clean(dir) == dir && dir != "/"
}

var toolShape = document.Shape{
	Kind: document.Text, Max: document.MaxPath, Pattern: pattern.New(`^/.*`),
	Want: "an absolute path",
	Valid: func(n *document.Node) string {
		if path.Clean(n.Value) != n.Value || n.Value == "/" {
			return fmt.Sprintf("invalid value %s: want the plain path of a directory other than /",
				document.Quote(n.Value))
		}
		return ""
	},
}

var allowToolShape = document.Shape{
	Kind: document.Text, Max: 64, Pattern: pattern.New(`^[A-Za-z0-9][A-Za-z0-9._+-]*$`),
	Want: "the name of a program, without a path",
}

var hideShape = document.Shape{
	Kind: document.Text, Max: document.MaxPath, Want: "a name, path or pattern",
	Valid: func(n *document.Node) string {
		if err := (checkout.HiddenPaths{n.Value}).Check(); err != nil {
			return err.Error()
		}
		return ""
	},
}

var services = []string{"postgres", "redis", "mysql"}

var serviceShape = document.Shape{Kind: document.Text, Max: 64, Choice: services, Unknown: func(name string) string {
	return unknownNameError("service", name, services, serviceNames)
}}

var serviceNames = map[string]string{"postgresql": "postgres", "pg": "postgres", "psql": "postgres", "valkey": "redis",
	"mariadb": "mysql"}

func limitsShape() *document.Shape {
	s := document.LimitsShape()
	s.Doc = "Requested limits of each command. Policy may grant less."
	return s
}

func policyShape() *document.Shape {
	return document.WorkspacePathShape("A directory of the repository with Rego that may deny, ask and lower.")
}

var checkoutShape = document.Shape{
	Kind: document.Object, Want: "an object with submodules and lfs",
	Doc: "What CI fetches beside the commit, from the repository's server and without credentials in the sandbox.",
	Fields: []document.Field{
		document.Optional("submodules",
			&document.Shape{Kind: document.Boolean, Doc: "The files of submodules, at the pinned commits."}),
		document.Optional("lfs", &document.Shape{Kind: document.Boolean,
			Doc: "The files of Git LFS in place of their pointers."}),
	},
}

var cacheShape = document.Shape{
	Kind: document.Boolean, Doc: "Whether compiled standard libraries are kept on the host from run to run (default true). They are made from the host's toolchains alone.",
}

var compareBaseShape = document.Shape{
	Kind: document.Boolean, Doc: "Whether a command that fails is run once more on the merge base of the pull request, to see whether it failed before (default true).",
}

var layersShape = document.Shape{
	Kind: document.Boolean, Doc: "Whether a layer of an earlier run replaces set-up where the same set-up made it (default true on your own machine, where runs also make them; in CI with the action's input layers-cache). With true, runs in CI use those of their host, too.",
}

func wordShape(words ...string) *document.Shape {
	return &document.Shape{Kind: document.Text, Max: 64, Choice: words, Want: quoteWords(words) + " or a list"}
}

func unknownNameError(what, name string, known []string, synonyms map[string]string) string {
	near := synonyms[strings.ToLower(name)]
	if near == "" {
		near = document.NearestName(strings.ToLower(name), known)
	}
	if near != "" {
		return fmt.Sprintf("unknown %s %s: did you mean %q?", what, document.Quote(name), near)
	}
	return fmt.Sprintf("unknown %s %s: known are %s", what, document.Quote(name), strings.Join(known, ", "))
}

func quoteWords(words []string) string {
	list := make([]string, len(words))
	for i, w := range words {
		list[i] = strconv.Quote(w)
	}
	return strings.Join(list, ", ")
}
