// SPDX-License-Identifier: Apache-2.0

package devcontainer

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/source/config"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const image = "mcr.microsoft.com/devcontainers/go@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func TestDecode(t *testing.T) {
	got, err := Decode([]byte(`// a comment
{
	"name": "x", /* another */
	"image": "` + image + `",
	"features": {}, "privileged": false, "forwardPorts": [80],
	"customizations": {"vscode": {"extensions": ["golang.go"]}},
	"containerEnv": {"APP_MODE": "test", "TZ": "UTC"},
	"remoteUser": "vscode",
	"postCreateCommand": {"b": ["npm", "ci"], "a": "go mod download && true"},
}`))
	if err != nil {
		t.Fatal(err)
	}
	want := Config{Image: "image:" + image, Env: map[string]string{"APP_MODE": "test", "TZ": "UTC"},
		Commands: []config.Command{{Run: "go mod download && true"}, {Argv: []string{"npm", "ci"}}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestCommands(t *testing.T) {
	for text, want := range map[string][]config.Command{
		`"make"`: {{Run: "make"}}, `["make", "a b"]`: {{Argv: []string{"make", "a b"}}}, `null`: nil, `{}`: nil, `""`: nil,
	} {
		got, err := Decode([]byte(`{"image": "` + image + `", "postCreateCommand": ` + text + `}`))
		if diff := cmp.Diff(want, got.Commands); diff != "" || err != nil {
			t.Errorf("%s: %v %s", text, err, diff)
		}
	}
}

// What a file asks for and a sandbox cannot have, or must not, is refused with the reason.
func TestRefused(t *testing.T) {
	field := func(text string) string { return `{"image": "` + image + `", ` + text + `}` }
	tests := map[string]string{ // document → part of the message
		`{}`:                           "image is not a string",
		`{"image": 1}`:                 "image is not a string",
		`{"image": "node:20"}`:         "has no digest",
		`[]`:                           "not an object",
		`null`:                         "not an object",
		``:                             "",
		`{"image": "a", "image": "b"}`: `"image" occurs twice`,
		`{"a": {"b": 1, "b": 2}}`:      `"b" occurs twice`,
		strings.Repeat("[", 100_000):   "levels",
		`{"x": "` + strings.Repeat("y", MaxBytes) + `"}`:    "bytes",
		field(`"features": {"ghcr.io/x/y:1": {}}`):          `"features"`,
		field(`"build": {"dockerfile": "Dockerfile"}`):      `"build"`,
		field(`"dockerFile": "Dockerfile"`):                 `"dockerFile"`,
		field(`"dockerComposeFile": ["a.yml"]`):             `"dockerComposeFile"`,
		field(`"mounts": ["source=/,target=/host"]`):        `"mounts"`,
		field(`"workspaceMount": "source=/"`):               `"workspaceMount"`,
		field(`"privileged": true`):                         `"privileged"`,
		field(`"runArgs": ["--network=host"]`):              `"runArgs"`,
		field(`"capAdd": ["SYS_ADMIN"]`):                    `"capAdd"`,
		field(`"securityOpt": ["seccomp=unconfined"]`):      `"securityOpt"`,
		field(`"initializeCommand": "curl x | sh"`):         `"initializeCommand"`,
		field(`"onCreateCommand": "x"`):                     `"onCreateCommand"`,
		field(`"containerEnv": ["A=1"]`):                    "not an object of strings",
		field(`"containerEnv": {"A": 1}`):                   "not an object of strings",
		field(`"containerEnv": {"A=B": "1"}`):               "invalid variable",
		field(`"containerEnv": {"A": "${localEnv:TOKEN}"}`): "refers to a variable",
		field(`"postCreateCommand": 1`):                     "invalid command",
		field(`"postCreateCommand": [1]`):                   "invalid command",
		field(`"postCreateCommand": {"a": {"b": "c"}}`):     "invalid command",
		field(`"postCreateCommand": "a\u0000b"`):            "invalid command",
	}
	for _, name := range []string{"PATH", "LD_PRELOAD", "ld_library_path", "BASH_ENV", "ENV", "IFS", "HOME", "GIT_SSH_COMMAND", "NODE_OPTIONS", "PYTHONPATH", "PYTHONSTARTUP", "PERL5OPT", "RUBYOPT",
		"JAVA_TOOL_OPTIONS", "GOFLAGS", "GOPROXY", "RUSTC_WRAPPER", "CARGO_HOME", "http_proxy", "HTTPS_PROXY", "npm_config_registry", "PIP_INDEX_URL", "MAKEFLAGS", "CC", "SSL_CERT_FILE", "DOCKER_HOST", "GITHUB_TOKEN"} {
		tests[field(`"containerEnv": {"`+name+`": "x"}`)] = "containerEnv sets"
	}
	for text, want := range tests {
		_, err := Decode([]byte(text))
		var stop *proposal.StopError
		if !errors.As(err, &stop) || stop.Code != "rootfs.devcontainer" || stop.Hint == "" || !strings.Contains(stop.Message, want) {
			t.Errorf("%.100s: %v; want %q and a hint", text, err, want)
		}
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	if _, found := Find(dir); found {
		t.Error("found in an empty directory")
	}
	for i := len(Paths) - 1; i >= 0; i-- {
		path := filepath.Join(dir, Paths[i])
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o644)); err != nil {
			t.Fatal(err)
		}
		if got, found := Find(dir); !found || got != path {
			t.Errorf("%q, want %q", got, path)
		}
	}
}

// FuzzDevcontainer decodes any bytes: a result has an image with a digest, no name that
// steers programs, and bounded commands.
func FuzzDevcontainer(f *testing.F) {
	f.Add([]byte(`{"image": "` + image + `", "containerEnv": {"A": "b"}, "postCreateCommand": {"a": ["b"]}, /* x */}`))
	f.Add([]byte(`{"image": "x", "features": {"a": {}}, // y` + "\n}"))
	f.Add([]byte("{\"a\":[[[]]]}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Decode(data)
		if err != nil {
			var stop *proposal.StopError
			if !errors.As(err, &stop) || stop.Code != "rootfs.devcontainer" {
				t.Fatal(err)
			}
			return
		}
		if !strings.Contains(c.Image, "@sha256:") || len(c.Commands) > maxCommands {
			t.Errorf("%+v", c)
		}
		for name, value := range c.Env {
			if steering.MatchString(name) || !variable.MatchString(name) || strings.ContainsRune(value, 0) {
				t.Errorf("variable %q", name)
			}
		}
		for _, command := range c.Commands {
			if (command.Run == "") == (len(command.Argv) == 0) {
				t.Errorf("%+v", command)
			}
		}
	})
}
