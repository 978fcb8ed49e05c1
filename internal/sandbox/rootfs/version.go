// SPDX-License-Identifier: Apache-2.0

package rootfs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/kit/replace"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// versionTime is how long a tool may take to print its version.
const versionTime = 2 * time.Second

// versionFiles are files of a toolchain with its version, relative to the directory above
// the tool's own, and the pattern that finds it there. * is the name of the tool's file,
// such as python3.12.
var versionFiles = map[string]struct {
	path    string
	pattern *pattern.Pattern
}{
	"go":      {"VERSION", pattern.New(`^go(\S+)`)},
	"node":    {"include/node/node_version.h", pattern.New(`(?s)define NODE_MAJOR_VERSION (\d+).*define NODE_MINOR_VERSION (\d+).*define NODE_PATCH_VERSION (\d+)`)},
	"python3": {"include/*/patchlevel.h", pattern.New(`(?m)^#define PY_VERSION\s+"([^"]+)"`)},
	"java":    {"release", pattern.New(`(?m)^JAVA_VERSION="([^"]+)"`)},
}

// versionArgs make tools print their version. Java's and .NET's take too long to start.
var versionArgs = map[string]string{
	"go": "version", "node": "--version", "python3": "--version", "ruby": "--version", "php": "--version",
	"cargo": "--version", "rustc": "--version", "deno": "--version", "bun": "--version", "gcc": "-dumpfullversion",
}

var versionWord = pattern.New(`\d+(\.\d+)+[A-Za-z0-9.+-]*`)

// Toolchains returns the known tools in PATH inside, with their versions as far as these
// can be read: from a file of the toolchain, from the cache file, or by running the host's
// tool. Only a tool that root and the owners of s alone can replace is run, as
// its owner, with an empty environment and for at most two seconds. cache may be "".
func (r Root) Toolchains(ctx context.Context, s Search, cache string) []proposal.Toolchain {
	v := &versionCache{s: s, run: r.Kind == "host", kept: readVersions(cache), read: map[string]keptVersion{}}
	found := make([]proposal.Toolchain, len(known))
	var all sync.WaitGroup
	for i, name := range known {
		if path := r.Lookup(name); path != "" {
			found[i] = proposal.Toolchain{Name: name, Path: path}
			if r.files != nil {
				found[i].Version = r.imageVersion(name, path)
				continue
			}
			all.Go(func() { found[i].Version = v.toolVersion(ctx, name, r.hostPath(path)) })
		}
	}
	all.Wait()
	v.writeCache(cache)
	list := []proposal.Toolchain{}
	for _, t := range found {
		if t.Name != "" {
			list = append(list, t)
		}
	}
	return list
}

// Warnings returns a sentence for each of r's Shadows, with its fix. toolchains are those inside.
func (r Root) Warnings(toolchains []proposal.Toolchain) (list []string) {
	for _, s := range r.Shadows {
		list = append(list, r.Describe(s, toolchains)+". Fix: "+s.Fix)
	}
	return list
}

// Describe describes s in one sentence, without the fix. toolchains are those inside.
func (r Root) Describe(s Shadow, toolchains []proposal.Toolchain) string {
	for _, t := range toolchains {
		if t.Path == s.Inside {
			return s.describeWith(t.Version)
		}
	}
	return s.describeWith("")
}

// versionCache are the versions of tools, by path.
type versionCache struct {
	s    Search
	run  bool
	kept map[string]keptVersion
	mu   sync.Mutex
	read map[string]keptVersion
}

// A keptVersion is a version that is valid while the file of its tool is the same.
type keptVersion struct {
	Version string `json:"version"`
	File    string `json:"file"` // inode, size and times
}

func (v *versionCache) toolVersion(ctx context.Context, name, path string) string {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return ""
	}
	if f, ok := versionFiles[name]; ok {
		if m := f.pattern.FindStringSubmatch(readSmall(filepath.Join(filepath.Dir(real), "..",
			strings.ReplaceAll(f.path, "*", filepath.Base(real))))); m != nil {
			return strings.Join(m[1:], ".")
		}
	}
	args, ok := versionArgs[name]
	info, err := os.Stat(real)
	if !ok || !v.run || err != nil {
		return ""
	}
	stat := info.Sys().(*syscall.Stat_t)
	file := fmt.Sprintf("%d %d %d %d", stat.Ino, stat.Size, stat.Mtim.Nano(), stat.Ctim.Nano())
	key := name + " " + real
	k := v.kept[key]
	if k.File != file {
		if k = (keptVersion{File: file}); v.s.checkTrusted(real) == nil {
			k.Version = printedVersion(ctx, real, args, stat.Uid, stat.Gid)
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.read[key] = k
	return k.Version
}

// printedVersion runs a tool as its owner and returns the first version that it prints, or "".
func printedVersion(ctx context.Context, path, arg string, uid, gid uint32) string {
	ctx, cancel := context.WithTimeout(ctx, versionTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, arg)
	cmd.Dir, cmd.Env = "/", []string{"PATH=/usr/bin:/bin", "HOME=/nonexistent", "LANG=C.UTF-8", "GOTOOLCHAIN=local"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uid, Gid: gid}
	}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	out := &firstBytes{}
	cmd.Stdout = out
	if err := cmd.Run(); err != nil {
		return ""
	}
	return versionWord.FindString(out.String())
}

// firstBytes keeps the beginning of what is written to it.
type firstBytes struct{ bytes.Buffer }

func (b *firstBytes) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:min(len(p), max(0, 4096-b.Len()))])
	return len(p), nil
}

// readVersions reads the cache. Only this process's user may be able to write it.
func readVersions(cache string) map[string]keptVersion {
	all := map[string]keptVersion{}
	info, err := os.Lstat(cache)
	if cache == "" || err != nil || !info.Mode().IsRegular() || ownerOf(info) != os.Geteuid() ||
		info.Mode()&0o022 != 0 || info.Size() > 1<<20 {
		return all
	}
	data, _ := os.ReadFile(cache)
	if json.Unmarshal(data, &all) != nil {
		return map[string]keptVersion{}
	}
	return all
}

// writeCache replaces the cache if something was read that it lacks. Failure costs only time.
func (v *versionCache) writeCache(cache string) {
	changed := false
	for key, k := range v.read {
		changed = changed || v.kept[key] != k
		v.kept[key] = k
	}
	if cache == "" || !changed || len(v.kept) > 1000 {
		return
	}
	data, err := json.Marshal(v.kept)
	if err != nil || os.MkdirAll(filepath.Dir(cache), 0o755) != nil {
		return
	}
	_ = replace.File(cache, data, 0o600)
}
