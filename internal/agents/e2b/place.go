// SPDX-License-Identifier: Apache-2.0

package e2b

import (
	"path"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/document"
	"github.com/fumehood/fumehood/internal/kit/text"
)

// home is the workspace's path inside. The SDK's relative paths are below it.
const home = "/home/user"

// A place is a path of the SDK.
type place struct {
	shown string // absolute, as the client named it
	rel   string // relative to the workspace, "." for the workspace; "" if it is elsewhere
}

// argument is how commands name the place. It never looks like an option.
func (p place) argument() string {
	if p.rel == "" {
		return p.shown
	}
	return "./" + p.rel
}

// isRoot reports whether the place is the workspace itself.
func (p place) isRoot() bool { return p.rel == "." }

// join returns the place below p. rel is clean.
func (p place) join(rel string) place {
	below := place{shown: path.Join(p.shown, rel)}
	if p.rel != "" {
		below.rel = path.Join(p.rel, rel)
	}
	return below
}

// findPlace returns the place that name, a path of the SDK, names.
func findPlace(name string) (place, error) {
	if strings.ContainsRune(name, 0) || len(name) > document.MaxPath {
		return place{}, refuseRequest(invalidArgument, "the path has a NUL or more than %d bytes", document.MaxPath)
	}
	full := name
	switch {
	case name == "~" || strings.HasPrefix(name, "~/"):
		full = home + name[1:]
	case !path.IsAbs(name):
		full = home + "/" + name
	}
	p := place{shown: path.Clean(full)}
	for _, dir := range []string{home, "/workspace"} {
		if rel, below := strings.CutPrefix(p.shown+"/", dir+"/"); below {
			p.rel = path.Join(".", rel)
		}
	}
	return p, nil
}

// writablePlace is findPlace for a file that a client writes.
func writablePlace(name string) (place, error) {
	if name == "" {
		return place{}, refuseRequest(invalidArgument, "path: missing")
	}
	p, err := findPlace(name)
	if err == nil && (p.isRoot() || strings.HasSuffix(name, "/")) {
		err = refuseRequest(invalidArgument, "the path %q is a directory", text.Inline(name, 200))
	}
	return p, err
}
