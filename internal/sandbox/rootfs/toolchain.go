// SPDX-License-Identifier: Apache-2.0

package rootfs

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A refusal is why a directory of PATH is not shown, and what to do about it.
type refusal struct{ reason, fix string }

func newRefusal(fix, format string, args ...any) *refusal {
	return &refusal{fmt.Sprintf(format, args...), fix}
}

// ownDir is the advice for directories that are not those of a toolchain.
const ownDir = "put the bin directory of the tool's own installation first in PATH (--tools)"

// includeDir makes the directory bin of PATH visible, with the toolchain that it belongs to,
// and returns its path inside.
func (r Root) includeDir(s Search, bin string) (string, *refusal) {
	return r.includeAt(s, bin, 3)
}

// includeAt follows at most depth links from toolchain to toolchain, such as from a
// virtual environment to the Python that it was made with.
func (r Root) includeAt(s Search, bin string, depth int) (string, *refusal) {
	if r.showsPath(bin) {
		return bin, nil
	}
	real, err := filepath.EvalSymlinks(bin)
	if err != nil {
		return "", newRefusal("remove it from PATH", "%s cannot be read", bin)
	}
	if r.showsPath(real) {
		return real, nil
	}
	prefix := prefixOf(real)
	if prefix == "" {
		return "", newRefusal(ownDir, "%s is not the bin directory of a toolchain: there is no lib, include or share next to it", real)
	}
	if no := s.checkToolchain(prefix, real); no != nil {
		return "", no
	}
	r.bindDir(prefix, prefix)
	at := real
	// Scripts and compiled-in paths may name the directory by the path in PATH.
	if rest, below := strings.CutPrefix(real, prefix); below && strings.HasSuffix(bin, rest) && bin != real {
		if lexical := strings.TrimSuffix(bin, rest); s.checkPlace(lexical) == nil && !r.isCoveredByMount(lexical) &&
			resolvesTo(lexical, prefix) {
			r.bindDir(lexical, prefix)
			at = bin
		}
	}
	if depth > 0 {
		r.followLinks(s, real, depth)
	}
	return at, nil
}

// bindDir shows the host's directory source at path, and omits binds that this one contains.
func (r Root) bindDir(path, source string) {
	for at, from := range r.Binds {
		if isWithinDir(at, path) && isWithinDir(from, source) {
			delete(r.Binds, at)
		}
	}
	r.Binds[path] = source
}

// followLinks makes visible what the known tools in bin are links to. What cannot be
// shown is reported as a shadowed tool later.
func (r Root) followLinks(s Search, bin string, depth int) {
	for _, name := range known {
		if real, err := filepath.EvalSymlinks(filepath.Join(bin, name)); err == nil && !r.showsPath(real) {
			_, _ = r.includeAt(s, filepath.Dir(real), depth-1)
		}
	}
}

// includeLinked makes visible the toolchains to which links in the directory dir lead, such as
// ~/.local/bin/python3.12 of uv, and returns their bin directories.
func (r Root) includeLinked(s Search, dir string) (bins []string) {
	for _, name := range known {
		real, err := filepath.EvalSymlinks(filepath.Join(dir, name))
		if err != nil || filepath.Dir(real) == dir || r.showsPath(real) {
			continue
		}
		bin := filepath.Dir(real)
		if again, err := filepath.EvalSymlinks(filepath.Join(bin, name)); err != nil || again != real {
			continue // by this name it is another program there, or none
		}
		if at, no := r.includeDir(s, bin); no == nil && !slices.Contains(bins, at) {
			bins = append(bins, at)
		}
	}
	return bins
}

// isCoveredByMount reports whether path is at or below a bind or a link of r, where nothing can be
// mounted.
func (r Root) isCoveredByMount(path string) bool {
	for at := range r.Binds {
		if isWithinDir(path, at) {
			return true
		}
	}
	for at := range r.Links {
		if isWithinDir(path, at) {
			return true
		}
	}
	return false
}

func resolvesTo(a, b string) bool {
	real, err := filepath.EvalSymlinks(a)
	return err == nil && real == b
}

// isWithinDir reports whether path is dir or below it.
func isWithinDir(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// prefixOf returns the directory of the toolchain to which the directory bin belongs, or
// "". bin has no links in it.
func prefixOf(bin string) string {
	dir := filepath.Dir(bin)
	switch base := filepath.Base(bin); {
	case isFile(bin, "dotnet") && isDir(bin, "shared"): // .NET has no bin
		return bin
	case base != "bin" && base != "sbin":
		return ""
	case isFile(bin, "go") && (isFile(dir, "VERSION") || isDir(dir, "src/runtime")): // GOROOT
		return dir
	case !isDir(dir, ".git") && slices.ContainsFunc([]string{"lib", "lib64", "include", "share", "dist"},
		func(name string) bool { return isDir(dir, name) }) && Search{}.checkPlace(dir) == nil:
		return dir
	case onlyPrograms(bin):
		return bin // Deno, Bun, Go's own bin directory: only the programs are shown
	}
	return ""
}

func isDir(dir, name string) bool {
	info, err := os.Stat(filepath.Join(dir, name))
	return err == nil && info.IsDir()
}

func isFile(dir, name string) bool {
	info, err := os.Stat(filepath.Join(dir, name))
	return err == nil && info.Mode().IsRegular()
}

// maxPrograms is how many programs a directory that is shown alone may have.
const maxPrograms = 200

// onlyPrograms reports whether everything in dir is a compiled program, or a link to one
// in it. Scripts often hold secrets.
func onlyPrograms(dir string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) == 0 || len(entries) > maxPrograms {
		return false
	}
	for _, e := range entries {
		real, err := filepath.EvalSymlinks(filepath.Join(dir, e.Name()))
		if err != nil || filepath.Dir(real) != dir || !isProgram(real) {
			return false
		}
	}
	return true
}

// isProgram reports whether path is a regular ELF file.
func isProgram(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var magic [4]byte
	n, _ := f.Read(magic[:])
	return n == len(magic) && string(magic[:]) == "\x7fELF"
}

// notShown are directories from which policy starts no program, and those that the
// sandbox provides itself.
var notShown = []string{"/boot", "/dev", "/etc", "/proc", "/run", "/sys", "/tmp", "/var", "/workspace", "/.fumehood",
	"/home/fumehood"}

// wide are directories that hold more than one toolchain.
var wide = []string{"/", "/home", "/root", "/opt", "/srv", "/mnt", "/media", "/data", "/usr", "/Users"}

// private are names of directories that hold credentials. They are refused, with
// everything below them.
var private = []string{".ssh", ".aws", ".azure", ".config", ".docker", ".gnupg", ".kube", ".password-store", ".git"}

// shared are names of directories that hold the files of many programs. They are refused,
// what is below them is not.
var shared = []string{".local", ".cache", "share", "Documents"}

// checkPlace checks a directory by its path.
func (s Search) checkPlace(dir string) *refusal {
	if !filepath.IsAbs(dir) || filepath.Clean(dir) != dir {
		return newRefusal(ownDir, "%s is not a plain path", dir)
	}
	for _, own := range notShown {
		if isWithinDir(dir, own) || isWithinDir(own, dir) {
			return newRefusal("install the tool elsewhere, for example in /opt", "policy starts no programs from %s",
				own)
		}
	}
	for _, part := range strings.Split(dir, "/") {
		if slices.Contains(private, part) {
			return newRefusal(ownDir, "%s may hold credentials", dir)
		}
	}
	if slices.Contains(wide, dir) || slices.Contains(shared, filepath.Base(dir)) {
		return newRefusal(ownDir, "%s holds more than a toolchain", dir)
	}
	for _, home := range homeDirs() {
		if isWithinDir(home, dir) {
			return newRefusal(ownDir, "%s is or contains the home directory %s", dir, home)
		}
	}
	if s.Workspace != "" && isWithinDir(dir, s.Workspace) {
		return newRefusal("create it in set-up, or install the tool outside the workspace",
			"it is in the workspace, whose content is the pull request's")
	}
	if s.Workspace != "" && isWithinDir(s.Workspace, dir) {
		return newRefusal("move the workspace", "%s contains the workspace", dir)
	}
	return nil
}

// checkToolchain checks whether the toolchain prefix, whose programs are in bin, may be shown. It
// has no links in its path.
func (s Search) checkToolchain(prefix, bin string) *refusal {
	if no := s.checkPlace(prefix); no != nil {
		return no
	}
	for _, dir := range []string{bin, prefix} {
		if no := s.checkTrusted(dir); no != nil {
			return no
		}
	}
	if info, err := os.Stat(prefix); err != nil || info.Mode()&0o005 != 0o005 && !s.isOwnedByUser(info) {
		return newRefusal("chmod -R o+rX "+prefix, "commands, which run as another user, cannot read %s", prefix)
	}
	if file := findCredentials(prefix); file != "" {
		return newRefusal("move "+file+" away", "%s may hold credentials", file)
	}
	return nil
}

// isOwnedByUser reports whether the user that commands run as, the workspace's owner, owns a file.
func (s Search) isOwnedByUser(info fs.FileInfo) bool {
	workspace, err := os.Stat(s.Workspace)
	return err == nil && ownerOf(workspace) != 0 && ownerOf(workspace) == ownerOf(info)
}

// checkTrusted checks that only the owners can replace path.
func (s Search) checkTrusted(path string) *refusal {
	owners := s.trustedOwners()
	for at := path; ; at = filepath.Dir(at) {
		info, err := os.Lstat(at)
		if err != nil || info.Mode()&fs.ModeSymlink != 0 {
			return newRefusal(ownDir, "%s cannot be read", at)
		}
		mode := info.Mode()
		switch {
		case !slices.Contains(owners, ownerOf(info)):
			return newRefusal("chown root "+at, "%s belongs to another user", at)
		case at != path && mode&fs.ModeSticky != 0: // others cannot replace what is in it
		case mode&0o002 != 0:
			return newRefusal("chmod o-w "+at, "every user can write to %s", at)
		case mode&0o020 != 0 && !privateGroup(info):
			return newRefusal("chmod g-w "+at, "a group can write to %s", at)
		}
		if at == "/" {
			return nil
		}
	}
}

// secretNames are names of files and directories with credentials.
var secretNames = []string{".netrc", "_netrc", ".pypirc", ".git-credentials", ".ssh", ".aws", ".azure", ".gnupg",
	".kube", ".docker", ".env",
	"credentials", "credentials.json", "credentials.toml", "credentials.xml", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "secrets.yml", "master.key"}

// settings are files of a toolchain that may hold tokens, with the words that say so.
var settings = map[string][]string{
	".npmrc": npmWords, "etc/npmrc": npmWords, "lib/node_modules/npm/npmrc": npmWords, "lib/node_modules/npm/.npmrc": npmWords,
	"pip.conf": {"@", "password"}, "etc/pip.conf": {"@", "password"}, "conf/settings.xml": mavenWords, "etc/gitconfig": {"@", "extraheader"},
	".condarc": {"@", "/t/"}, "gradle.properties": {"password", "token"},
}

var (
	npmWords   = []string{"_auth", "_password"}
	mavenWords = []string{"<password>", "<passphrase>", "<privatekey>"}
)

// findCredentials returns the first file of the toolchain prefix that looks like it holds
// credentials, or "". It reads the names of three levels of directories.
func findCredentials(prefix string) string {
	for _, name := range sortedKeys(settings) {
		if path := filepath.Join(prefix, name); holdsCredentials(path, settings[name]) {
			return path
		}
	}
	return secretBelow(prefix, 3)
}

// withoutComments removes XML comments: Maven's own file has a password in an example.
func withoutComments(text string) string {
	var kept strings.Builder
	for {
		before, comment, _ := strings.Cut(text, "<!--")
		kept.WriteString(before)
		_, after, closed := strings.Cut(comment, "-->")
		if !closed {
			return kept.String()
		}
		text = after
	}
}

func secretBelow(dir string, levels int) string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return ""
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if slices.Contains(secretNames, e.Name()) {
			return path
		}
		if e.IsDir() && levels > 1 {
			if found := secretBelow(path, levels-1); found != "" {
				return found
			}
		}
	}
	return ""
}

// readSmall returns the beginning of a regular file, or "".
func readSmall(path string) string {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	data := make([]byte, 64<<10)
	n, _ := f.Read(data)
	return string(data[:n])
}
