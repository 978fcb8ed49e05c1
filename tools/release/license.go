// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	"golang.org/x/mod/module"
)

// noticesFile has the licenses and notices of everything in an archive that others wrote.
const noticesFile = "THIRD_PARTY_NOTICES"

// ownNotices are files of this repository with the licenses of what it contains of others.
var ownNotices = []string{"internal/egress/secrets/LICENSE.gitleaks", "internal/shell/snippet/grammar/source/LICENSES"}

// linked are the modules of each program, and Go's standard library as std.
type linked map[string][]*debug.Module

// readLinked returns what the linker recorded in programs of dir, without this repository's own modules.
func readLinked(dir string, programs []string) (linked, error) {
	all := linked{}
	for _, name := range programs {
		info, err := buildinfo.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, fmt.Errorf("cannot read the modules of %q: %w", name, err)
		}
		all[name] = []*debug.Module{{Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go")}}
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			if !strings.HasPrefix(m.Path, ".") { // of which the archive is a version
				all[name] = append(all[name], m)
			}
		}
	}
	return all, nil
}

// licenses are what the modules of an archive are licensed under.
type licenses struct {
	ids   map[string][]string // SPDX ids by module
	texts map[string][]string // the files that have a text: PATH@VERSION/FILE
}

// findLicenses reads the licenses of modules in the module cache, where the build had them, and of Go. A
// module without a license, or with one that is not known, is an error.
func (o releaseFlags) findLicenses(ctx context.Context, modules linked) (licenses, error) {
	l := licenses{map[string][]string{}, map[string][]string{}}
	cmd := exec.CommandContext(ctx, "go", "env", "GOMODCACHE", "GOROOT")
	cmd.Dir = o.root
	out, err := cmd.Output()
	cache, root, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if err != nil {
		return l, fmt.Errorf("cannot find the module cache: %w", err)
	}
	for _, m := range slices.Concat(slices.Collect(maps.Values(modules))...) {
		name := m.Path + "@" + m.Version
		if l.ids[name] != nil {
			continue
		}
		dir := root
		if m.Path != "std" {
			path, err := module.EscapePath(m.Path)
			version, err2 := module.EscapeVersion(m.Version)
			if err := errors.Join(err, err2); err != nil {
				return l, err
			}
			dir = filepath.Join(cache, path+"@"+version)
		}
		if err := l.addModule(name, dir); err != nil {
			return l, err
		}
	}
	for _, name := range ownNotices {
		if err := l.addText("fumehood/"+name, filepath.Join(o.root, name)); err != nil {
			return l, err
		}
	}
	return l, nil
}

// legalFiles matches the names of licenses and notices, codeLicenses those of licenses.
var (
	legalFiles   = regexp.MustCompile(`(?i)^(un)?(licen[cs]es?|copying|copyright|notices?|patents|authors)([-.][-.0-9a-z]+)?$`)
	codeLicenses = regexp.MustCompile(`(?i)^(un)?(licen[cs]es?|copying)`)
)

// addModule adds all legal files of a module, which may contain code of others below its directory. Its ids
// are those of the files at the top.
func (l licenses) addModule(name, dir string) error {
	depth := func(path string) int { return strings.Count(strings.TrimPrefix(path, dir), "/") }
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err // such as for a module that is not in the cache
		}
		file := d.Name()
		switch {
		case d.IsDir() && path != dir && (file == "testdata" || strings.HasPrefix(name, "std@")):
			return fs.SkipDir
		case !d.Type().IsRegular() || !legalFiles.MatchString(file) || strings.HasSuffix(file, ".go"):
			return nil
		}
		if depth(path) == 1 && codeLicenses.MatchString(file) && !strings.HasSuffix(file, ".docs") {
			ids, err := identify(path)
			if err != nil {
				return err
			}
			l.ids[name] = append(l.ids[name], ids...)
		}
		return l.addText(name+strings.TrimPrefix(path, dir), path)
	})
	if err == nil && l.ids[name] == nil {
		err = errors.New("there is no license file")
	}
	if err != nil {
		return fmt.Errorf("cannot find the license of %s: %w", name, err)
	}
	slices.Sort(l.ids[name])
	l.ids[name] = slices.Compact(l.ids[name])
	return nil
}

func (l licenses) addText(name, path string) error {
	text, err := os.ReadFile(path)
	l.texts[string(text)] = append(l.texts[string(text)], name)
	return err
}

// identify returns the SPDX ids of the licenses in a file.
func identify(path string) (ids []string, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	words := strings.ToLower(strings.Join(strings.Fields(string(text)), " "))
	has := func(phrase string) bool { return strings.Contains(words, phrase) }
	bsd := has("redistribution and use in source and binary forms")
	for id, found := range map[string]bool{
		"Apache-2.0":   has("apache license version 2.0, january 2004") || has("under the apache license, version 2.0"),
		"MIT":          has("permission is hereby granted, free of charge, to any person obtaining a copy"),
		"BSD-3-Clause": bsd && has("neither the name"),
		"BSD-2-Clause": bsd && !has("neither the name"),
		"ISC":          has("permission to use, copy, modify, and") && has("with or without fee is hereby granted"),
		"MPL-2.0":      has("mozilla public license version 2.0") || has("mozilla public license, version 2.0"),
	} {
		if found {
			ids = append(ids, id)
		}
	}
	if ids == nil {
		return nil, fmt.Errorf("%s is not a license that is known", path)
	}
	return ids, nil
}

// write writes the file of all texts, each once, in the order of what has it.
func (l licenses) write(path string) error {
	type notice struct {
		of   []string
		text string
	}
	var list []notice
	for text, of := range l.texts {
		slices.Sort(of)
		list = append(list, notice{of, text})
	}
	slices.SortFunc(list, func(a, b notice) int { return strings.Compare(a.of[0], b.of[0]) })
	var all strings.Builder
	all.WriteString("Licenses and notices of what others wrote in this archive.\n")
	for _, n := range list {
		of, text := strings.Join(n.of, "\n"), strings.TrimSpace(n.text)
		fmt.Fprintf(&all, "\n%s\n%s\n\n%s\n", strings.Repeat("=", 79), of, text)
	}
	return os.WriteFile(path, []byte(all.String()), 0o644)
}
