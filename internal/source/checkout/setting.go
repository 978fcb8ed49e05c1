// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/fumehood/fumehood/internal/kit/pattern"
)

// judgeSettings checks each setting, and every included file whatever the condition: since
// v6, actions/checkout keeps the token in such a file.
func (s *search) judgeSettings(name, folder, data string) error {
	settings, err := parseConfig(data)
	if err != nil {
		return unreadableError(name, err)
	}
	for _, set := range settings {
		if set.section == "extensions" && set.key == "refstorage" && !strings.EqualFold(set.value, "files") {
			return newStopError(CodeNoCheckout, "check out with refs in files", nil,
				"the checkout keeps its refs as %q, which is not supported", cutOutput(set.value))
		}
		if why := secretIn(set); why != "" {
			return credentialError(name, fmt.Sprintf("%s %s", cutOutput(settingName(set)), why))
		}
		if (set.section == "include" || set.section == "includeif") && set.key == "path" {
			if err := s.readInclude(folder, set.value); err != nil {
				return err
			}
		}
	}
	return nil
}

// settingName removes user information that is part of a name.
func settingName(s setting) string { return userinfoRE.ReplaceAllString(s.name(), "://***@") }

var (
	userinfoRE = pattern.New(`(?i)://[^/\s@]*@`)
	identityRE = pattern.New(`(?i)(^|\s)-i|IdentityFile`)
	secretRE   = pattern.New(`pass(word|wd|phrase)?$|token$|secret$|smtppass|authtoken|accesskey`)
)

// secretIn returns why a setting holds a credential or leads to one, or "".
func secretIn(s setting) string {
	if hasUserinfo(s.sub) || hasUserinfo(s.value) {
		return "contains user information in an address"
	}
	set := s.value != ""
	switch {
	case s.section == "http" && s.key == "extraheader" && set:
		return "sets a header that git sends with each request"
	case s.section == "http" && (s.key == "cookiefile" || s.key == "sslkey") && set:
		return "names a file with a credential"
	case s.section == "credential" && s.key == "helper" && set:
		return "names a program that prints credentials"
	case s.key == "sshcommand" && identityRE.MatchString(s.value):
		return "names a private key"
	case secretRE.MatchString(s.key) && set:
		return "looks like a credential"
	}
	return ""
}

// hasUserinfo reports whether text contains "scheme://user@". For ssh, "git@" is a
// name and not a credential, so an ssh URL counts only with a password.
func hasUserinfo(text string) bool {
	for _, at := range userinfoRE.FindAllStringIndex(text, -1) {
		ssh := strings.HasSuffix(strings.ToLower(text[:at[0]]), "ssh")
		if !ssh || strings.Contains(text[at[0]+len("://"):at[1]], ":") {
			return true
		}
	}
	return false
}

// readInclude reads an included file where git would, and below the runner's temporary
// directory, which has a different path in a container.
func (s *search) readInclude(folder, to string) error {
	if s.read++; s.read > maxIncludes {
		return unreadableError(to, errors.New("too many files are included"))
	}
	if home, ok := strings.CutPrefix(to, "~/"); ok {
		to = filepath.Join(s.getenv("HOME"), home)
	}
	if strings.HasPrefix(to, "~") || strings.HasPrefix(to, "%") || to == "" {
		return unreadableError(to, errors.New("cannot determine the included file"))
	}
	if !filepath.IsAbs(to) {
		to = filepath.Join(folder, to)
	}
	places := []string{to}
	if temp := s.getenv("RUNNER_TEMP"); temp != "" {
		places = append(places, filepath.Join(temp, filepath.Base(to)))
	}
	for _, place := range places {
		f, err := os.OpenFile(place, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			continue
		}
		if err != nil {
			return unreadableError(place, err)
		}
		data, err := readAll(f, place)
		if err != nil {
			return err
		}
		return s.judgeSettings(place, filepath.Dir(place), string(data))
	}
	return nil
}
