// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"encoding/xml"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// settings is the relevant part of Maven's settings.xml.
type settings struct {
	Mirrors []struct {
		ID       string `xml:"id"`
		URL      string `xml:"url"`
		MirrorOf string `xml:"mirrorOf"`
	} `xml:"mirrors>mirror"`
	Servers []struct {
		ID       string `xml:"id"`
		Username string `xml:"username"`
		Password string `xml:"password"`
	} `xml:"servers>server"`
}

// findMaven reads settings.xml, because Maven's own command to print it would download
// a plugin.
func findMaven(_ context.Context, _ *toolRunner, r *Registry) error {
	var list []settings
	for _, path := range settingsFiles() {
		s, err := readSettings(path)
		if err != nil {
			return err
		}
		list = append(list, s)
	}
	for _, s := range list {
		if found, err := r.addMirror(s, list); found || err != nil {
			r.Source = "settings.xml"
			return err
		}
	}
	r.usePublic()
	return nil
}

// settingsFiles returns the user's and the installation's file, in order of
// precedence.
func settingsFiles() []string {
	var files []string
	if homeDir() != "" {
		files = append(files, filepath.Join(homeDir(), ".m2", "settings.xml"))
	}
	for _, name := range []string{"MAVEN_HOME", "M2_HOME"} {
		if folder := os.Getenv(name); folder != "" {
			files = append(files, filepath.Join(folder, "conf", "settings.xml"))
		}
	}
	return append(files, "/etc/maven/settings.xml", "/usr/share/maven/conf/settings.xml")
}

func readSettings(path string) (settings, error) {
	var s settings
	text, err := readConfig(path)
	if err != nil || text == "" {
		return s, err
	}
	if err := xml.Unmarshal([]byte(text), &s); err != nil {
		return s, fmt.Errorf("cannot read %s: %v", path, err)
	}
	return s, nil
}

// addMirror takes the first mirror of Maven Central.
func (r *Registry) addMirror(s settings, all []settings) (bool, error) {
	for _, m := range s.Mirrors {
		if !mirrorsCentral(m.MirrorOf) {
			continue
		}
		p, err := r.addURL(expandMaven(m.URL))
		if err != nil {
			return true, err
		}
		r.addServer(strings.TrimSpace(m.ID), p.origin, all)
		r.Files = append(r.Files, File{Path: "~/.m2/settings.xml", Content: fmt.Sprintf(
			"<settings>\n  <mirrors>\n    <mirror>\n      <id>mirror</id>\n      <mirrorOf>*</mirrorOf>\n      <url>%s</url>\n"+
				"    </mirror>\n  </mirrors>\n</settings>\n", p.clean)})
		return true, nil
	}
	return false, nil
}

func mirrorsCentral(of string) bool {
	list := strings.Split(strings.ReplaceAll(of, " ", ""), ",")
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
	}
	if slices.Contains(list, "!central") {
		return false
	}
	return slices.Contains(list, "*") || slices.Contains(list, "central") || slices.Contains(list, "external:*")
}

// addServer adds a server's user name and password. An encrypted password, "{…}", is
// not decrypted.
func (r *Registry) addServer(id string, o Origin, all []settings) {
	for _, s := range all {
		for _, server := range s.Servers {
			password := expandMaven(server.Password)
			if strings.TrimSpace(server.ID) != id || o.Scheme != "https" || password == "" ||
				strings.HasPrefix(password, "{") {
				continue
			}
			r.addCredential(*o.basicAuthorization(url.UserPassword(expandMaven(server.Username), password)))
			return
		}
	}
}

// expandMaven replaces "${env.NAME}" with the variable's value.
func expandMaven(s string) string {
	return os.Expand(strings.TrimSpace(s), func(name string) string {
		if variable, ok := strings.CutPrefix(name, "env."); ok {
			return os.Getenv(variable)
		}
		return "${" + name + "}"
	})
}
