// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/sandbox/install"
)

const downloads = "https://github.com/fumehood/fumehood/releases/download/"

// built is the content of release.env: lines of KEY=VALUE in a fixed order.
type built []string

// build makes the archives and release.env in o.out.
func (o releaseFlags) build(ctx context.Context) (built, error) {
	if err := os.Mkdir(o.out, 0o755); err != nil {
		return nil, err
	}
	name := o.version
	if name == "" {
		name = "source"
	}
	source, err := sourceDigest(o.root)
	if err != nil {
		return nil, err
	}
	b := built{"VERSION=" + name}
	if o.version != "" {
		b = append(b, "URL="+downloads+o.version)
	} else {
		b = append(b, "SOURCE="+source)
	}
	b = append(b, "GO="+runtime.Version(), "CC="+compiler(ctx))
	for _, arch := range o.archs {
		lines, err := o.buildArch(ctx, name, arch)
		if err != nil {
			return nil, err
		}
		b = append(b, lines...)
	}
	return b, os.WriteFile(filepath.Join(o.out, "release.env"), b.text(), 0o644)
}

func (o releaseFlags) buildArch(ctx context.Context, name, arch string) ([]string, error) {
	dir := filepath.Join(o.out, arch)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	release := install.Release{Root: o.root, Dir: dir, Arch: arch, Version: o.version, Progress: o.progress}
	if err := release.Build(ctx); err != nil {
		return nil, err
	}
	license, err := os.ReadFile(filepath.Join(o.root, "LICENSE"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "LICENSE"), license, 0o644)
	}
	if err != nil {
		return nil, err
	}
	suffix := name + "_linux_" + arch + ".tar.gz"
	lines, err := o.pack(ctx, dir, filepath.Join(o.out, "fumehood_"+suffix), "", programs,
		digested{"FUMEHOOD", filepath.Join(dir, "fumehood")}, digested{"RUNSC", filepath.Join(dir, "fumehood-runsc")})
	if err != nil || !o.node {
		return lines, err
	}
	node, err := o.buildNode(ctx, release, filepath.Join(o.out, "fumehood-node_"+suffix))
	return append(lines, node...), err
}

// buildNode makes the archive of a node's parts from the directory of the release, which then has no
// fumehood: nodes do not run it.
func (o releaseFlags) buildNode(ctx context.Context, release install.Release, archive string) ([]string, error) {
	o.progress("building the programs of nodes for " + release.Arch)
	if err := release.BuildNode(ctx); err != nil {
		return nil, err
	}
	if err := os.Remove(filepath.Join(release.Dir, "fumehood")); err != nil {
		return nil, err
	}
	return o.pack(ctx, release.Dir, archive, "NODE_", nodePrograms)
}

// A digested file has a line in release.env.
type digested struct{ key, path string }

// pack makes an archive of dir with the notices of its programs' modules, and its bill of materials. It
// returns their lines of release.env, and those of other files.
func (o releaseFlags) pack(
	ctx context.Context, dir, archive, key string, programs []string, others ...digested,
) (lines []string, err error) {
	modules, err := readLinked(dir, programs)
	if err != nil {
		return nil, err
	}
	found, err := o.findLicenses(ctx, modules)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(found.write(filepath.Join(dir, noticesFile)), pack(dir, archive)); err != nil {
		return nil, fmt.Errorf("cannot pack %q: %w", archive, err)
	}
	bom := strings.TrimSuffix(archive, ".tar.gz") + ".cdx.json"
	if err := writeBOM(bom, dir, archive, o.version, modules, found.ids); err != nil {
		return nil, err
	}
	for _, f := range append([]digested{{key + "ARCHIVE", archive}, {key + "SBOM", bom}}, others...) {
		sum, err := digest(f.path)
		if err != nil {
			return nil, err
		}
		lines = append(lines, fmt.Sprintf("SHA256_%s_%s=%s", f.key, strings.ToUpper(filepath.Base(dir)), sum))
	}
	o.progress("packed " + archive)
	return lines, nil
}

func digest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// compiler returns the C compiler that the prewarmer was built with. A different compiler
// gives an archive a different digest, and this line shows the reason.
func compiler(ctx context.Context) string {
	for _, name := range install.Compilers() {
		if text, err := exec.CommandContext(ctx, name, "--version").Output(); err == nil {
			first, _, _ := strings.Cut(string(text), "\n")
			return strings.TrimSpace(first)
		}
	}
	return "none"
}

func (b built) text() []byte {
	return []byte(`# What the action installs: the release, and the SHA-256 of its archives, of their software
# bills of materials, and of the programs in them. Pinning the action to a commit pins
# these, too. Written by tools/release; "source" means that the action builds itself.
` + strings.Join(b, "\n") + "\n")
}

// compare returns the lines in which the file at path differs from b.
func (b built) compare(path string) []string {
	text, err := os.ReadFile(path)
	if err != nil {
		return []string{err.Error()}
	}
	var differences []string
	lines := slices.DeleteFunc(strings.Split(strings.TrimRight(string(text), "\n"), "\n"), func(line string) bool {
		return strings.HasPrefix(line, "#")
	})
	for _, line := range lines {
		if !slices.Contains(b, line) {
			differences = append(differences, "- "+line)
		}
	}
	for _, line := range b {
		if !slices.Contains(lines, line) {
			differences = append(differences, "+ "+line)
		}
	}
	return differences
}
