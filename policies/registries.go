// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"sync"
)

// A Registry is a row of registries/data.json, which has all facts about an ecosystem: adding one is
// adding a row. Rules read the same rows as data.registries.
type Registry struct {
	// Name is what follows "registry:", and Aliases are names that people use for it: of its tools, its
	// language, its site.
	Name    string   `json:"name"`
	Aliases []string `json:"aliases"`
	// Setup says when set-up may read it: "found" if a detected or listed command requests it, "named"
	// if the configuration also names it, "" never.
	Setup string `json:"setup"`
	// Public are the places of the public registry: an index and the hosts that it sends its clients to.
	// Each is a URL as in package registry: one that ends in "!" is a single path, without that mark it is
	// everything below.
	Public []string `json:"public"`
	// Mirror is the variable by which the tools of this host use another server in place of the first
	// host of Public, with the same paths.
	Mirror string `json:"mirror"`
	// Hosts are those of a registry without Public.
	Hosts []string `json:"hosts"`
	// Queries and Slashes say where a request may have a query, and a slash that is sent as "%2F": true for
	// everywhere, or a list of hosts. Only rules read them.
	Queries any `json:"queries"`
	Slashes any `json:"slashes"`
	// Manifest is the file that names a project's packages from it, "*" for any beginning of its name; "" for
	// none.
	Manifest string      `json:"manifest"`
	Install  []Installer `json:"install"`
}

// An Installer is a tool that installs what a project needs with commands that are always the same.
type Installer struct {
	Language string `json:"language"` // one project of a directory is set up by the first that fits
	ID       string `json:"id"`       // of its commands, without "setup-"
	Tool     string `json:"tool"`     // that the host must have
	Why      string `json:"why"`      // what the commands do, for people
	// A directory with one of the Manifests is a project, and one with one of the Locks is one of its
	// own. A "*" at the beginning of a name is any. Contains must be in the manifest.
	Locks     []string `json:"locks"`
	Manifests []string `json:"manifests"`
	Contains  string   `json:"contains"`
	// Locked are the commands where there is a lock file, Unlocked where there is none. Pinned means
	// that what Locked leaves depends on the lock file alone, not on the day.
	Locked   [][]string `json:"locked"`
	Unlocked [][]string `json:"unlocked"`
	Pinned   bool       `json:"pinned"`
	// Registries are others that the commands read if the configuration allows it.
	Registries []string          `json:"registries"`
	Members    []string          `json:"members"` // patterns of directories that belong to the project
	Env        map[string]string `json:"env"`     // for set-up and the commands after it
	Path       string            `json:"path"`    // of the project's programs, first in PATH
}

//go:embed registries/data.json
var registryTable []byte

// Registries returns the rows of registries/data.json. The caller must not change them.
var Registries = sync.OnceValue(func() (list []Registry) {
	d := json.NewDecoder(bytes.NewReader(registryTable))
	d.DisallowUnknownFields()
	if err := d.Decode(&list); err != nil {
		panic("policies: internal error: registries/data.json: " + err.Error())
	}
	return list
})

// RegistryNames returns the names of the registries that is accepts, in the usual order.
func RegistryNames(is func(Registry) bool) (names []string) {
	for _, r := range Registries() {
		if is(r) {
			names = append(names, r.Name)
		}
	}
	return names
}
