// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"context"
	"errors"
	"io"
	"net/url"
	"path"
	"slices"
	"strings"
)

// maxModulesFile is the maximum size of .gitmodules in bytes.
const maxModulesFile = 64 << 10

// A submodulePlace is where a submodule comes from, or why it comes from nowhere.
type submodulePlace struct{ url, why string }

// submodulePlaces are the submodules of a .gitmodules by their path; why refuses all of them.
type submodulePlaces struct {
	by  map[string]submodulePlace
	why string
}

func (p submodulePlaces) placeOf(path string) submodulePlace {
	switch at, known := p.by[path]; {
	case p.why != "":
		return submodulePlace{why: p.why}
	case !known:
		return submodulePlace{why: ".gitmodules does not name it"}
	default:
		return at
	}
}

// modulePlaces reads the .gitmodules of a commit. An error is not about its content.
func (s *Store) modulePlaces(ctx context.Context, sha string) (submodulePlaces, error) {
	o, tree, err := s.treeOf(ctx, sha)
	if err != nil {
		return submodulePlaces{}, err
	}
	defer o.close()
	at, err := o.findEntry(ctx, sha, tree, ".gitmodules")
	var absent *NotFound
	switch {
	case errors.As(err, &absent):
		return submodulePlaces{why: "the commit has no .gitmodules"}, nil
	case err != nil:
		return submodulePlaces{}, err
	case at.kind != file:
		return submodulePlaces{why: ".gitmodules is not a regular file"}, nil
	}
	var data []byte
	err = o.readEach(ctx, "blob", maxModulesFile, []string{at.id}, func(_ int, _ int64, r io.Reader) (err error) {
		data, err = io.ReadAll(r)
		return err
	})
	switch {
	case ctx.Err() != nil:
		return submodulePlaces{}, stopOrContextError(ctx, err)
	case err != nil:
		return submodulePlaces{why: ".gitmodules cannot be read: " + err.Error()}, nil
	}
	return s.remote.parseModules(string(data)), nil
}

// parseModules reads a .gitmodules. A file that git might read differently refuses every submodule.
func (r remote) parseModules(data string) submodulePlaces {
	settings, err := parseConfig(data)
	if err != nil {
		return submodulePlaces{why: ".gitmodules cannot be read: " + err.Error()}
	}
	type module struct{ paths, urls []string }
	modules := map[string]*module{}
	for _, set := range settings {
		if set.section != "submodule" {
			continue
		}
		m := modules[set.sub]
		if m == nil {
			m = &module{}
			modules[set.sub] = m
		}
		switch set.key {
		case "path":
			m.paths = append(m.paths, set.value)
		case "url":
			m.urls = append(m.urls, set.value)
		}
	}
	found := submodulePlaces{by: map[string]submodulePlace{}}
	for name, m := range modules {
		for _, at := range m.paths {
			p := submodulePlace{why: badModule(name, at)}
			if p.why == "" && (len(m.paths) != 1 || len(m.urls) != 1) {
				p.why = ".gitmodules does not give it one path and one url"
			}
			if p.why == "" {
				p.url, p.why = r.moduleURL(m.urls[0])
			}
			if _, twice := found.by[at]; twice {
				p = submodulePlace{why: ".gitmodules names it twice"}
			}
			found.by[at] = p
		}
	}
	return found
}

// badModule returns why a submodule's name or path is refused, or "". This package uses
// neither as a path or an argument: what is refused is what attacks on git have looked like.
func badModule(name, at string) string {
	parts := strings.FieldsFunc(name, func(r rune) bool { return r == '/' || r == '\\' })
	switch {
	case name == "" || strings.HasPrefix(name, "-") || slices.Contains(parts, "..") ||
		slices.ContainsFunc(parts, dotGit) || badName(name):
		return "its name is refused"
	case checkPath(at) != nil || at == "" || strings.HasPrefix(at, "-"):
		return "its path is refused"
	}
	return ""
}

// moduleURL returns the address of a submodule, which must be on the repository's own server.
func (r remote) moduleURL(text string) (address, why string) {
	own, err := url.Parse(r.url)
	if err != nil {
		return "", "the repository's own URL cannot be read"
	}
	if strings.ContainsAny(text, "%\\@ ") || strings.HasPrefix(text, "-") {
		return "", "its URL is refused"
	}
	if strings.HasPrefix(text, "./") || strings.HasPrefix(text, "../") {
		own.Path = path.Join(own.Path, text)
		text = own.String()
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != own.Scheme:
		return "", "its URL is not " + own.Scheme
	case !strings.EqualFold(u.Host, own.Host):
		return "", "its URL is on another server"
	case path.Clean(u.Path) != strings.TrimSuffix(u.Path, "/"):
		return "", "its URL is refused"
	}
	if u, why := checkURL(text, own.String()); why == "" {
		return u.String(), ""
	}
	return "", "its URL is refused"
}
