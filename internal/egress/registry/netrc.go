// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// readNetrc reads the operator's .netrc, which go, pip and curl use: user names and
// passwords by host. Its "default" is ignored: it would be sent to every registry.
func readNetrc() (map[string]*url.Userinfo, error) {
	path := os.Getenv("NETRC")
	if path == "" && homeDir() == "" {
		return nil, nil
	}
	if path == "" {
		path = filepath.Join(homeDir(), ".netrc")
	}
	text, err := readConfig(path)
	if err != nil {
		return nil, err
	}
	return parseNetrc(text), nil
}

func parseNetrc(text string) map[string]*url.Userinfo {
	found := map[string]*url.Userinfo{}
	var machine, login string
	words := netrcWords(text)
	for i := 0; i < len(words); i++ {
		var value string
		if i+1 < len(words) {
			value = words[i+1]
		}
		switch words[i] {
		case "machine":
			machine, login = strings.ToLower(value), ""
			i++
		case "default":
			machine = ""
		case "login":
			login = value
			i++
		case "password":
			if machine != "" && found[machine] == nil {
				found[machine] = url.UserPassword(login, value)
			}
			i++
		}
	}
	return found
}

// netrcWords skips comments and macros, which end at an empty line.
func netrcWords(text string) []string {
	var words []string
	macro := false
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0:
			macro = false
		case macro || strings.HasPrefix(fields[0], "#"):
		case fields[0] == "macdef":
			macro = true
		default:
			words = append(words, fields...)
		}
	}
	return words
}

// addNetrc adds the credentials for r's https origins. Origins with a pattern and whole paths are
// skipped: a credential is for one host and all that is below a path.
func (r *Registry) addNetrc(netrc map[string]*url.Userinfo) {
	for _, o := range r.Origins {
		if user := netrc[o.Host]; user != nil && o.Scheme == "https" && !strings.ContainsAny(o.Path, "*!") {
			r.addCredential(*o.basicAuthorization(user))
		}
	}
}
