// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
)

// findPypi runs "pip config list". pip does not print its default: the public index.
func findPypi(ctx context.Context, a *toolRunner, r *Registry) error {
	r.Source = "pip config list"
	config, err := pipConfig(ctx, a)
	if err != nil {
		return err
	}
	index := config["index-url"]
	if index == "" {
		r.usePublic()
		index = "https://" + public()["pypi"][0].Host + public()["pypi"][0].Path
	}
	main, err := r.addIndexes(index)
	if err != nil {
		return err
	}
	extra, err := r.addIndexes(config["extra-index-url"])
	if err != nil {
		return err
	}
	r.Env["PIP_INDEX_URL"], r.Env["UV_DEFAULT_INDEX"] = main, main
	if extra != "" {
		r.Env["PIP_EXTRA_INDEX_URL"], r.Env["UV_INDEX"] = extra, extra
	}
	if trusted := r.plainHTTPHosts(); trusted != "" {
		r.Env["PIP_TRUSTED_HOST"], r.Env["UV_INSECURE_HOST"] = trusted, trusted
	}
	r.Env["PIP_CONFIG_FILE"] = "/dev/null" // no other file in the sandbox overrides this
	r.Env["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
	r.Env["PIP_RETRIES"], r.Env["UV_HTTP_RETRIES"] = "5", "3" // without a registry there are none
	return nil
}

// pipConfig returns the settings of "pip install", by precedence: variables, then the
// command's own section, then the global section.
func pipConfig(ctx context.Context, a *toolRunner) (map[string]string, error) {
	out, err := a.runTool(ctx, "pip", "config", "list")
	if errors.Is(err, errAbsent) {
		out, err = a.runTool(ctx, "pip3", "config", "list")
	}
	if errors.Is(err, errAbsent) {
		return map[string]string{"index-url": os.Getenv("PIP_INDEX_URL"),
			"extra-index-url": os.Getenv("PIP_EXTRA_INDEX_URL")}, nil
	}
	if err != nil {
		return nil, err
	}
	config := map[string]string{}
	for _, section := range []string{"global.", "install.", ":env:."} {
		for line := range strings.Lines(out) {
			rest, ok := strings.CutPrefix(strings.TrimSpace(line), section)
			key, value, found := strings.Cut(rest, "=")
			if ok && found {
				config[key] = unquotePython(value)
			}
		}
	}
	return config, nil
}

// unquotePython parses a string as Python prints it.
func unquotePython(s string) string {
	if len(s) >= 2 && (s[0] == '\'' || s[0] == '"') {
		s = s[1 : len(s)-1]
	}
	return strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\'`, `'`, `\t`, "\t").Replace(s)
}

// addIndexes adds a list of indexes. An index is at …/simple or …/+simple, with its
// files next to it.
func (r *Registry) addIndexes(list string) (string, error) {
	var inside []string
	for _, text := range strings.Fields(list) {
		p, err := readURL(text)
		if err != nil {
			return "", err
		}
		inside = append(inside, p.clean)
		if r.isPublic(p.origin) {
			r.addCompanions(p.origin)
			continue
		}
		r.addPlace(p, p.origin.trimLastSegment("simple").trimLastSegment("+simple"))
	}
	return strings.Join(inside, " "), nil
}

// plainHTTPHosts returns the hosts that use plain HTTP, which pip must be configured to
// accept.
func (r *Registry) plainHTTPHosts() string {
	var list []string
	for _, o := range r.Origins {
		if o.Scheme == "http" {
			list = append(list, net.JoinHostPort(o.Host, strconv.Itoa(o.Port)))
		}
	}
	return strings.Join(list, " ")
}
