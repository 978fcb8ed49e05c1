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

// A place is where a submodule comes from, or why it comes from nowhere.
type place struct{ url, why string }

// places are the submodules of a .gitmodules by their path; why refuses all of them.
type places struct {
	by  map[string]place
	why string
}

func (p places) of(path string) place {
	switch at, known := p.by[path]; {
	case p.why != "":
		return place{why: p.why}
	case !known:
		return place{why: ".gitmodules does not name it"}
	default:
		return at
	}
}

// modulePlaces reads the .gitmodules of a commit. An error is not about its content.
func (s *Store) modulePlaces(ctx context.Context, sha string) (places, error) {
	o, tree, err := s.treeOf(ctx, sha)
	if err != nil {
		return places{}, err
	}
	defer o.close()
	at, err := o.find(ctx, sha, tree, ".gitmodules")
	var absent *NotFound
	switch {
	case errors.As(err, &absent):
		return places{why: "the commit has no .gitmodules"}, nil
	case err != nil:
		return places{}, err
	case at.kind != file:
		return places{why: ".gitmodules is not a regular file"}, nil
	}
	var data []byte
	err = o.each(ctx, "blob", maxModulesFile, []string{at.id}, func(_ int, _ int64, r io.Reader) (err error) {
		data, err = io.ReadAll(r)
		return err
	})
	switch {
	case ctx.Err() != nil:
		return places{}, ended(ctx, err)
	case err != nil:
		return places{why: ".gitmodules cannot be read: " + err.Error()}, nil
	}
	return s.remote.places(string(data)), nil
}

// places reads a .gitmodules. A file that git might read differently refuses every submodule.
func (r remote) places(data string) places {
	settings, err := parseConfig(data)
	if err != nil {
		return places{why: ".gitmodules cannot be read: " + err.Error()}
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
	found := places{by: map[string]place{}}
	for name, m := range modules {
		for _, at := range m.paths {
			p := place{why: badModule(name, at)}
			if p.why == "" && (len(m.paths) != 1 || len(m.urls) != 1) {
				p.why = ".gitmodules does not give it one path and one url"
			}
			if p.why == "" {
				p.url, p.why = r.moduleURL(m.urls[0])
			}
			if _, twice := found.by[at]; twice {
				p = place{why: ".gitmodules names it twice"}
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
	case name == "" || strings.HasPrefix(name, "-") || slices.Contains(parts, "..") || slices.ContainsFunc(parts, dotGit) || badName(name):
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
