// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/sandbox/install"
)

// programs are the files of an archive that Go linked, nodePrograms those of an archive for nodes.
// gvisor-bin/gvisor_sentry is the same file as fumehood-runsc; the prewarmer is C without libraries.
var (
	programs     = []string{"fumehood", "fumehood-init", "fumehood-runsc"}
	nodePrograms = append([]string{"fumehood-init", "fumehood-runsc"}, install.NodePrograms...)
)

// A bom is a CycloneDX 1.6 document, with the fields that we use. It has no time, so that
// the same build gives the same document; its serial number is made from the archive's
// digest.
type bom struct {
	Format       string       `json:"bomFormat"`
	Spec         string       `json:"specVersion"`
	Serial       string       `json:"serialNumber"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type     string    `json:"type"`
	Ref      string    `json:"bom-ref"`
	Name     string    `json:"name"`
	Version  string    `json:"version,omitempty"`
	PURL     string    `json:"purl,omitempty"`
	Hashes   []bomHash `json:"hashes,omitempty"`
	Licenses []license `json:"licenses,omitempty"`
}

type bomHash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type license struct {
	License struct {
		ID string `json:"id"`
	} `json:"license"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn,omitempty"`
}

// writeBOM writes the software bill of materials of archive, whose unpacked files are in
// dir: each program with its digest, and the modules and the Go version that the linker
// recorded in it, with their licenses. Modules have no digests there: go.sum has them.
func writeBOM(path, dir, archive, version string, modules linked, licenses map[string][]string) error {
	sum, err := digest(archive)
	if err != nil {
		return err
	}
	top := component{Type: "application", Ref: "archive", Name: filepath.Base(archive), Version: version,
		Hashes: []bomHash{{"SHA-256", sum}}}
	top.addLicenses("Apache-2.0")
	b := bom{Format: "CycloneDX", Spec: "1.6", Version: 1, Metadata: metadata{top},
		Dependencies: []dependency{{"archive", slices.Sorted(maps.Keys(modules))}}}
	b.Serial = fmt.Sprintf("urn:uuid:%s-%s-8%s-8%s-%s", sum[:8], sum[8:12], sum[12:15], sum[15:18], sum[18:30])
	libraries := map[string]component{}
	for _, name := range b.Dependencies[0].DependsOn {
		if err := b.add(filepath.Join(dir, name), modules[name], licenses, libraries); err != nil {
			return err
		}
	}
	for _, ref := range slices.Sorted(maps.Keys(libraries)) {
		b.Components = append(b.Components, libraries[ref])
	}
	text, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// addLicenses adds licenses by their SPDX ids.
func (c *component) addLicenses(ids ...string) {
	for _, id := range ids {
		var l license
		l.License.ID = id
		c.Licenses = append(c.Licenses, l)
	}
}

// add adds the program at path, and the modules in it.
func (b *bom) add(
	path string, modules []*debug.Module, licenses map[string][]string, libraries map[string]component,
) error {
	sum, err := digest(path)
	if err != nil {
		return err
	}
	name := filepath.Base(path)
	b.Components = append(b.Components,
		component{Type: "application", Ref: name, Name: name, Hashes: []bomHash{{"SHA-256", sum}}})
	uses := []string{}
	for _, m := range modules {
		ref := "pkg:golang/" + m.Path + "@" + strings.ReplaceAll(m.Version, "+", "%2B")
		c := component{Type: "library", Ref: ref, Name: m.Path, Version: m.Version, PURL: ref}
		c.addLicenses(licenses[m.Path+"@"+m.Version]...)
		libraries[ref], uses = c, append(uses, ref)
	}
	slices.Sort(uses)
	b.Dependencies = append(b.Dependencies, dependency{name, uses})
	return nil
}
