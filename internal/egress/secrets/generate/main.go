// SPDX-License-Identifier: Apache-2.0

// Command generate writes rules.json from the rules that gitleaks ships. It is a
// separate module, so that fumehood does not need TOML. In its directory:
//
//	go run . > ../rules.json && cp "$(go run . -licence)" ../LICENSE.gitleaks
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

const (
	module  = "github.com/zricethezav/gitleaks/v8"
	version = "v8.30.1"
)

// An allowlist describes text that is not a secret. In the file it may apply to paths
// and commits, which a request does not have.
type allowlist struct {
	Condition   string   `toml:"condition" json:"-"`
	Paths       []string `toml:"paths" json:"-"`
	Commits     []string `toml:"commits" json:"-"`
	And         bool     `toml:"-" json:"and,omitempty"`
	RegexTarget string   `toml:"regexTarget" json:"target,omitempty"`
	Regexes     []string `toml:"regexes" json:"regexes,omitempty"`
	Stopwords   []string `toml:"stopwords" json:"stopwords,omitempty"`
}

type rule struct {
	ID         string      `toml:"id" json:"id"`
	Regex      string      `toml:"regex" json:"regex"`
	Group      int         `toml:"secretGroup" json:"group,omitempty"`
	Entropy    float64     `toml:"entropy" json:"entropy,omitempty"`
	Keywords   []string    `toml:"keywords" json:"keywords,omitempty"`
	Allowlists []allowlist `toml:"allowlists" json:"allow,omitempty"`
}

type config struct {
	Source    string      `toml:"-" json:"source"`
	Licence   string      `toml:"-" json:"licence"`
	Rules     []rule      `toml:"rules" json:"rules"`
	Allowlist allowlist   `toml:"allowlist" json:"-"`
	Allow     []allowlist `toml:"-" json:"allow"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	folder, err := download()
	if err != nil {
		return err
	}
	if len(os.Args) > 1 {
		fmt.Println(filepath.Join(folder, "LICENSE"))
		return nil
	}
	text, err := os.ReadFile(filepath.Join(folder, "config", "gitleaks.toml"))
	if err != nil {
		return err
	}
	var c config
	if err := toml.Unmarshal(text, &c); err != nil {
		return err
	}
	c.Source, c.Licence = module+"@"+version+" config/gitleaks.toml", "MIT, see LICENSE.gitleaks"
	c.trim()
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	return encoder.Encode(c)
}

// download returns the module's directory; go checks it against the checksum database.
func download() (string, error) {
	out, err := exec.Command("go", "mod", "download", "-json", module+"@"+version).Output()
	if err != nil {
		return "", fmt.Errorf("cannot download %s: %w", module, err)
	}
	var found struct{ Dir string }
	err = json.Unmarshal(out, &found)
	return found.Dir, err
}

// trim removes everything that concerns files: rules that check only a name, and the
// parts of allowlists that need one.
func (c *config) trim() {
	rules := c.Rules
	c.Rules = nil
	for _, r := range rules {
		if r.Regex == "" {
			continue
		}
		for i, k := range r.Keywords {
			r.Keywords[i] = strings.ToLower(k)
		}
		r.Allowlists = trimAll(r.Allowlists)
		c.Rules = append(c.Rules, r)
	}
	c.Allow = trimAll([]allowlist{c.Allowlist})
}

func trimAll(list []allowlist) []allowlist {
	var kept []allowlist
	for _, a := range list {
		a.And = strings.EqualFold(a.Condition, "and") || a.Condition == "&&"
		needsFile := a.And && len(a.Paths)+len(a.Commits) > 0
		if !needsFile && len(a.Regexes)+len(a.Stopwords) > 0 {
			kept = append(kept, a)
		}
	}
	return kept
}
