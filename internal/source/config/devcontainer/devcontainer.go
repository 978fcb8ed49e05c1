// SPDX-License-Identifier: Apache-2.0

// Package devcontainer reads the part of a devcontainer.json (https://containers.dev) that a
// sandbox can have: image, which must have a digest, containerEnv without names that steer
// programs, and postCreateCommand, whose commands policy decides like any other.
//
// Everything that would build an image, give more rights, show parts of the host or run
// something elsewhere is refused with the reason: a container that lacks what its file says is
// not that container. Fields for editors, and remoteUser, have no effect and are ignored.
//
// The file chooses the root file system. It must come from the maintainers, never from a pull
// request.
package devcontainer

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/source/config"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Values of a rootfs field or flag.
const (
	Name   = "devcontainer"
	Prefix = Name + ":" // followed by the path of a file
	Why    = "postCreateCommand of devcontainer.json"
)

// Paths are where a repository has the file; the first that exists is used.
var Paths = []string{".devcontainer/devcontainer.json", ".devcontainer.json"}

// Bounds of a file.
const (
	MaxBytes    = 256 << 10
	maxDepth    = 64
	maxCommands = 20
	maxText     = 16 << 10 // bytes of a command or a value
	maxWords    = 256
	maxEnv      = 100
)

// A Config is what is used of a file.
type Config struct {
	Image    string // "image:REPOSITORY@sha256:…"
	Env      map[string]string
	Commands []config.Command // postCreateCommand, in order
}

// Is reports whether a value of rootfs names a devcontainer.json.
func Is(value string) bool { return value == Name || strings.HasPrefix(value, Prefix) }

// Find returns the path of the file in the directory of a repository that the caller trusts.
func Find(dir string) (string, bool) {
	for _, name := range Paths {
		if info, err := os.Lstat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() {
			return filepath.Join(dir, name), true
		}
	}
	return "", false
}

// refused are fields that change what a container is or may do, with the reason.
var refused = map[string]string{
	"features":             "a feature is a script that builds another image: build the image with it and name its digest",
	"build":                "no image is built: build it and name its digest in image",
	"dockerFile":           "no image is built: build it and name its digest in image",
	"dockerfile":           "no image is built: build it and name its digest in image",
	"context":              "no image is built: build it and name its digest in image",
	"dockerComposeFile":    "one sandbox runs, not several containers: name one image, and services in .github/fumehood.yml",
	"service":              "one sandbox runs, not several containers: name one image, and services in .github/fumehood.yml",
	"runServices":          "one sandbox runs, not several containers: name one image, and services in .github/fumehood.yml",
	"mounts":               "nothing of the host is mounted: remove it",
	"workspaceMount":       "the workspace is always /workspace: remove it",
	"privileged":           "commands run without privileges: remove it",
	"capAdd":               "commands have no capabilities: remove it",
	"securityOpt":          "the sandbox's own rules apply: remove it",
	"runArgs":              "arguments of docker run can lower any limit: remove it",
	"initializeCommand":    "it would run on the host: remove it",
	"onCreateCommand":      "only postCreateCommand is run: move the command there",
	"updateContentCommand": "only postCreateCommand is run: move the command there",
	"secrets":              "no secret enters a sandbox: remove it",
}

// steering matches names of variables that decide which code a program loads, or that the
// sandbox sets itself: those of the shell, the loader, git, interpreters and package tools.
var steering = pattern.New(`^(?i:LD_.*|DYLD_.*|GLIBC_.*|MALLOC_.*|BASH.*|ENV|SHELL.*|IFS|PS[0-9]|PROMPT_COMMAND|PATH|CDPATH|FPATH|HOME|USER|LOGNAME|TMP|TMPDIR|TEMP|PWD|OLDPWD|` +
	`GIT_.*|SSH_.*|GPG_.*|EDITOR|VISUAL|PAGER|LESS.*|.*_PROXY|SSL_.*|CURL_.*|WGETRC|.*_CA_BUNDLE|NODE_OPTIONS|NODE_PATH|NODE_EXTRA.*|NPM_CONFIG_.*|YARN_.*|PNPM_.*|COREPACK_.*|` +
	`PYTHON.*|PIP_.*|UV_.*|POETRY_.*|VIRTUAL_ENV|CONDA.*|PERL.*|RUBY.*|GEM_.*|BUNDLE_.*|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|JDK_JAVA_OPTIONS|CLASSPATH|MAVEN_.*|GRADLE_.*|` +
	`GO.*|CGO_.*|CARGO.*|RUST.*|CC|CXX|LD|AR|CFLAGS|CXXFLAGS|LDFLAGS|MAKE.*|DOTNET_.*|NUGET_.*|PHP.*|COMPOSER.*|LUA_.*|DENO_.*|BUN_.*|DOCKER_.*|FUMEHOOD.*|GITHUB_.*|RUNNER_.*|ACTIONS_.*)$`)

var variable = pattern.New(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

func newStopError(hint, format string, args ...any) error {
	return &proposal.StopError{Code: "rootfs.devcontainer",
		Message: "invalid devcontainer.json: " + fmt.Sprintf(format, args...), Hint: hint}
}

// Decode reads a file: JSON with comments and trailing commas. Its error is a
// *proposal.StopError (rootfs.devcontainer) with the reason.
func Decode(data []byte) (c Config, err error) {
	fields, err := parseObject(data)
	if err != nil {
		return c, err
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if why, is := refused[name]; is && !isEmptyField(fields[name]) {
			return c, newStopError(why, "unsupported field %q", name)
		}
	}
	if err := decodeText(fields["image"], &c.Image); err != nil || c.Image == "" {
		return c, newStopError("set image to REPOSITORY@sha256:…", "image is not a string")
	}
	if !strings.Contains(c.Image, "@sha256:") {
		return c, newStopError("add the digest: image@sha256:…; what a tag names can change", "image %q has no digest",
			c.Image)
	}
	c.Image = "image:" + c.Image
	if c.Env, err = decodeEnvironment(fields["containerEnv"]); err != nil {
		return c, err
	}
	c.Commands, err = decodeCommands(fields["postCreateCommand"])
	return c, err
}

// parseObject returns the fields of the document. A name that occurs twice is refused anywhere.
func parseObject(data []byte) (map[string]json.RawMessage, error) {
	const hint = "see https://containers.dev/implementors/json_reference"
	if len(data) > MaxBytes || measureNesting(data) > maxDepth {
		return nil, newStopError(hint, "it has more than %d bytes or %d levels", MaxBytes, maxDepth)
	}
	value, err := hujson.Parse(data)
	if err != nil {
		return nil, newStopError(hint, "%.200v", err)
	}
	if name, twice := findRepeatedName(value); twice {
		return nil, newStopError("remove one of them", "the name %.100q occurs twice", name)
	}
	value.Standardize()
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(value.Pack(), &fields); err != nil || fields == nil {
		return nil, newStopError(hint, "it is not an object")
	}
	return fields, nil
}

// measureNesting returns at least the depth of a document, before it is parsed.
func measureNesting(data []byte) (deepest int) {
	depth := 0
	for _, b := range data {
		switch b {
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			depth--
		}
	}
	return deepest
}

// findRepeatedName returns a name that an object has twice.
func findRepeatedName(v hujson.Value) (string, bool) {
	switch v := v.Value.(type) {
	case *hujson.Object:
		seen := map[string]bool{}
		for _, m := range v.Members {
			name := m.Name.Value.(hujson.Literal).String()
			if seen[name] {
				return name, true
			}
			seen[name] = true
			if name, twice := findRepeatedName(m.Value); twice {
				return name, true
			}
		}
	case *hujson.Array:
		for _, e := range v.Elements {
			if name, twice := findRepeatedName(e); twice {
				return name, true
			}
		}
	}
	return "", false
}

// isEmptyField reports whether a field is as good as absent.
func isEmptyField(raw json.RawMessage) bool {
	return slices.Contains([]string{"null", "false", "{}", "[]", `""`}, string(raw))
}

func decodeText(raw json.RawMessage, into *string) error {
	if err := json.Unmarshal(raw, into); err != nil {
		return err
	}
	if len(*into) > maxText || strings.ContainsRune(*into, 0) {
		return fmt.Errorf("more than %d bytes", maxText)
	}
	return nil
}

func decodeEnvironment(raw json.RawMessage) (map[string]string, error) {
	if raw == nil {
		return nil, nil
	}
	var env map[string]string
	if err := json.Unmarshal(raw, &env); err != nil || len(env) > maxEnv {
		return nil, newStopError("use an object of at most 100 strings", "containerEnv is not an object of strings")
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		value := env[name]
		switch {
		case !variable.MatchString(name) || len(value) > maxText || strings.ContainsRune(value, 0):
			return nil, newStopError("use a plain name and a short value",
				"containerEnv has an invalid variable %.100q", name)
		case steering.MatchString(name):
			return nil, newStopError("remove it: the variable decides which code programs load or which settings they use", "containerEnv sets %q", name)
		case strings.Contains(value, "${"):
			return nil, newStopError("write the value itself",
				"containerEnv's %q refers to a variable of the host or the container", name)
		}
	}
	return env, nil
}

// decodeCommands returns those of a string (run by the shell), an array (words), or an object of
// either, whose commands run one after the other in the order of their names.
func decodeCommands(raw json.RawMessage) ([]config.Command, error) {
	if raw == nil || isEmptyField(raw) {
		return nil, nil
	}
	var named map[string]json.RawMessage
	if json.Unmarshal(raw, &named) != nil {
		one, err := decodeCommand(raw)
		return []config.Command{one}, err
	}
	if len(named) > maxCommands {
		return nil, newStopError("use fewer commands", "postCreateCommand has more than %d commands", maxCommands)
	}
	var list []config.Command
	for _, name := range slices.Sorted(maps.Keys(named)) {
		one, err := decodeCommand(named[name])
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, nil
}

func decodeCommand(raw json.RawMessage) (c config.Command, err error) {
	if decodeText(raw, &c.Run) == nil && strings.TrimSpace(c.Run) != "" {
		return c, nil
	}
	c.Run = ""
	if err := json.Unmarshal(raw, &c.Argv); err != nil || len(c.Argv) == 0 || len(c.Argv) > maxWords ||
		len(raw) > maxText || slices.ContainsFunc(c.Argv, func(w string) bool { return strings.ContainsRune(w, 0) }) {
		return c, newStopError("use a string, an array of strings, or an object of them",
			"postCreateCommand has an invalid command")
	}
	return c, nil
}
