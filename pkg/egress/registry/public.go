// SPDX-License-Identifier: Apache-2.0

package registry

// public are the registries of ecosystems whose tools have no question for the host
// that they would use, or are not on this host: an index and its companions, the hosts
// that it sends its clients to. Those of go, npm and apt are always asked for.
var public = map[string][]Origin{
	"pypi": {
		{"https", "pypi.org", 443, "/simple"},
		{"https", "pypi.org", 443, "/pypi"}, // the JSON API of versions
		{"https", "files.pythonhosted.org", 443, "/"},
	},
	"crates": {
		{"https", "index.crates.io", 443, "/"},
		{"https", "static.crates.io", 443, "/crates"},
		{"https", "crates.io", 443, "/api/v1/crates"}, // sends downloads on to static
	},
	"maven": {
		{"https", "repo.maven.apache.org", 443, "/maven2"},
		{"https", "repo1.maven.org", 443, "/maven2"}, // its old name, which build files still say
	},
	"rubygems": {
		{"https", "rubygems.org", 443, "/"},
		{"https", "index.rubygems.org", 443, "/"},
	},
	// A download goes on from github.com to a store of signed URLs.
	"github-releases": {
		{"https", "github.com", 443, "/*/*/releases"},
		{"https", "api.github.com", 443, "/repos/*/*/releases"},
		{"https", "release-assets.githubusercontent.com", 443, "/github-production-release-asset"},
		{"https", "objects.githubusercontent.com", 443, "/github-production-release-asset-2e65be"},
	},
}

const publicSource = "public defaults"

// usePublic makes r the public registry of its ecosystem.
func (r *Registry) usePublic() {
	r.Source = publicSource
	r.Origins = append(r.Origins, public[r.Name]...)
}

// isPublic says that o is a host of the public registry, whose companions belong to it.
func (r *Registry) isPublic(o Origin) bool {
	for _, p := range public[r.Name] {
		if p.Scheme == o.Scheme && p.Host == o.Host && p.Port == o.Port {
			return true
		}
	}
	return false
}

// addCompanions adds those of the public registry, if o is of it.
func (r *Registry) addCompanions(o Origin) {
	if r.isPublic(o) {
		for _, p := range public[r.Name] {
			r.add(place{}, p)
		}
	}
}
