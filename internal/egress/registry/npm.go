// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
)

// findNpm runs "npm config" to find the default registry and those of scopes.
func findNpm(ctx context.Context, a *toolRunner, r *Registry) error {
	config, err := npmConfig(ctx, a, r)
	if err != nil {
		return err
	}
	files, err := npmFiles(config)
	if err != nil {
		return err
	}
	addHidden(config, files)
	main, _ := config["registry"].(string)
	p, err := r.addURL(main)
	if err != nil {
		return err
	}
	r.addCompanions(p.origin) // lock files of yarn 1 name registry.yarnpkg.com, which is the same registry
	for _, name := range []string{"npm_config_registry", "COREPACK_NPM_REGISTRY", "YARN_NPM_REGISTRY_SERVER"} {
		r.Env[name] = strings.TrimSuffix(p.clean, "/")
	}
	r.Env["npm_config_registry"] = p.clean
	// These would send requests that no registry needs, by POST.
	for _, name := range []string{"audit", "fund", "update_notifier"} {
		r.Env["npm_config_"+name] = "false"
	}
	r.Env["YARN_ENABLE_TELEMETRY"] = "0"
	r.Env["npm_config_fetch_retries"], r.Env["YARN_HTTP_RETRY"] = "2", "3" // without a registry there are none
	if prefix := nodeHeaders(); prefix != "" {
		r.Env[nodedirVariable(config)] = prefix
	}
	if err := r.addScopes(config); err != nil {
		return err
	}
	for _, text := range files {
		r.readTokens(text)
	}
	return nil
}

// nodeHeaders returns the prefix of the host's Node.js, if its headers are there, or "".
// With them node-gyp compiles addons without nodejs.org, which is not a registry.
func nodeHeaders() string {
	path, err := exec.LookPath("node")
	if err != nil {
		return ""
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return ""
	}
	prefix := filepath.Dir(filepath.Dir(path))
	if info, err := os.Stat(filepath.Join(prefix, "include/node/node_api.h")); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	return prefix
}

// nodedirVariable returns the variable for node-gyp's option. npm 11 warns of the one that npm 10
// and earlier need.
func nodedirVariable(config map[string]any) string {
	version, _ := config["npm-version"].(string)
	major, _, _ := strings.Cut(version, ".")
	if n, err := strconv.Atoi(major); err != nil || n < 11 {
		return "npm_config_nodedir"
	}
	return "npm_package_config_node_gyp_nodedir"
}

func npmConfig(ctx context.Context, a *toolRunner, r *Registry) (map[string]any, error) {
	r.Source = "npm config"
	out, err := a.runTool(ctx, "npm", "config", "list", "--json")
	if value := npmVariable(); errors.Is(err, errAbsent) && value != "" {
		r.Source = "npm_config_registry"
		return map[string]any{"registry": value}, nil
	}
	if err != nil {
		return nil, err
	}
	config := map[string]any{}
	if err := json.Unmarshal([]byte(out), &config); err != nil {
		return nil, fmt.Errorf("cannot read the output of npm config: %v", err)
	}
	return config, nil
}

var scopeKey = pattern.New(`^@[a-z0-9~][a-z0-9._~-]*:registry$`)

// addScopes adds "@scope:registry". It goes into the sandbox as a file, because a shell
// drops variables with such names.
func (r *Registry) addScopes(config map[string]any) error {
	var lines []string
	for key, value := range config {
		text, ok := value.(string)
		if !ok || !scopeKey.MatchString(key) {
			continue
		}
		p, err := r.addURL(text)
		if err != nil {
			return err
		}
		lines = append(lines, key+"="+p.clean+"\n")
	}
	if len(lines) > 0 {
		slices.Sort(lines)
		slices.SortFunc(r.Origins[1:], func(a, b Origin) int { return strings.Compare(a.Host+a.Path, b.Host+b.Path) })
		r.Files = append(r.Files, File{Path: "~/.npmrc", Content: strings.Join(lines, "")})
	}
	return nil
}

// npmFiles reads npm's configuration files, the user's first: they contain what npm does
// not print.
func npmFiles(config map[string]any) ([]string, error) {
	var files []string
	for _, key := range []string{"userconfig", "globalconfig"} {
		path, _ := config[key].(string)
		if path == "" {
			continue
		}
		text, err := readConfig(path)
		if err != nil {
			return nil, err
		}
		files = append(files, text)
	}
	return files, nil
}

var registryLine = pattern.New(`^\s*(registry|@[^\s=:]+:registry)\s*=\s*"?([^"\s]+)"?\s*$`)

// addHidden adds the registries that npm does not print because their URL contains a
// password.
func addHidden(config map[string]any, files []string) {
	for _, text := range append([]string{"registry=" + npmVariable()}, files...) {
		for line := range strings.Lines(text) {
			m := registryLine.FindStringSubmatch(strings.TrimRight(line, "\r\n"))
			if m != nil && config[m[1]] == nil {
				config[m[1]] = os.Expand(m[2], os.Getenv)
			}
		}
	}
}

// npmVariable returns the variable that sets npm's registry. npm accepts it in any case.
func npmVariable() string {
	for _, entry := range os.Environ() {
		if name, value, _ := strings.Cut(entry, "="); strings.EqualFold(name, "npm_config_registry") {
			return value
		}
	}
	return ""
}

// A token is in a line "//host/path/:_authToken=…".
var tokenLine = pattern.New(`^\s*//([^\s=]+?)/?:(_authToken|_auth|username|_password)\s*=\s*"?([^"\s]*)"?\s*$`)

func (r *Registry) readTokens(text string) {
	users, passwords := map[string]string{}, map[string]string{}
	for line := range strings.Lines(text) {
		m := tokenLine.FindStringSubmatch(strings.TrimRight(line, "\r\n"))
		if m == nil {
			continue
		}
		place, value := m[1], os.Expand(m[3], os.Getenv)
		switch m[2] {
		case "_authToken":
			r.addToken(place, "Bearer "+value)
		case "_auth":
			r.addToken(place, "Basic "+value)
		case "username":
			users[place] = value
		case "_password":
			if plain, err := base64.StdEncoding.DecodeString(value); err == nil {
				passwords[place] = string(plain)
			}
		}
	}
	for _, place := range slices.Sorted(maps.Keys(users)) {
		if password, ok := passwords[place]; ok {
			text := users[place] + ":" + password
			r.addToken(place, "Basic "+base64.StdEncoding.EncodeToString([]byte(text)))
		}
	}
}

// addToken adds a token if where is at or below one of r's https origins.
func (r *Registry) addToken(where, value string) {
	p, err := readURL("https://" + where)
	if err != nil || strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c > '~' }) {
		return
	}
	for _, o := range r.Origins {
		same := o.Scheme == "https" && o.Host == p.origin.Host && o.Port == p.origin.Port
		if same && (isBelowPrefix(o.Path, p.origin.Path) || isBelowPrefix(p.origin.Path, o.Path)) {
			r.addCredential(*p.origin.authorizationFor(value))
			return
		}
	}
}
