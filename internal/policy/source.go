// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fumehood/fumehood/internal/policy/module"
	"github.com/fumehood/fumehood/policies"
)

// Bounds of the files that the Rego parser reads.
const (
	maxFile  = 256 << 10
	maxTotal = 4 << 20
	maxFiles = 1000
)

// MaxTotal is the maximum total size of a layer's files in bytes.
const MaxTotal = maxTotal

// A Layer is one policy as read, before it is compiled.
type Layer struct {
	Name  string // as shown in messages: the directory, git reference or bundle
	Files []File
	Role  Role

	shipped bool      // it is the shipped policy
	now     time.Time // see Options.Now
}

// readTime is when s is read.
func (s Layer) readTime() time.Time {
	if s.now.IsZero() {
		return time.Now()
	}
	return s.now
}

// A Role is what a layer may do. Each role includes those before it.
type Role int

// The roles. Only a layer that restricts can be observed: otherwise its grants would apply
// without its denials.
const (
	// Restricts may deny, ask and lower.
	Restricts Role = iota
	// Opens may also grant hosts and related permissions (private, raw and redact in
	// fumehood.egress). It must not allow commands.
	Opens
	// Allows may also allow commands, programs, variables and triggers for which the
	// granting layer has no rule. What another layer denies remains denied.
	Allows
	// Grants replaces the shipped default, which is then not loaded, and sets the limits
	// that the others lower. At most one layer may have it.
	Grants
)

// A File is one file of a Layer. Only Rego files that are not tests decide; tests and cases
// are for testing the policy.
type File struct {
	Name    string // slash-separated, within the layer
	Content []byte
}

// Decides reports whether f takes part in decisions: it is not a test, and it is read.
func (f File) Decides() bool {
	return path.Ext(f.Name) == ".rego" && !strings.HasSuffix(f.Name, "_test.rego") || f.Name == optionsFile ||
		f.HoldsData()
}

// IsTest reports whether f contains tests in Rego.
func (f File) IsTest() bool { return strings.HasSuffix(f.Name, "_test.rego") }

// IsCases reports whether f contains cases.
func (f File) IsCases() bool {
	name := path.Base(f.Name)
	return slices.Contains([]string{"cases.yaml", "cases.yml"}, name) || strings.HasSuffix(name, "_cases.yaml") ||
		strings.HasSuffix(name, "_cases.yml")
}

// optionsFile is the shipped policy's knowledge of tools' options.
const optionsFile = "options.txt"

// ShippedLayer is the shipped policy with its tests.
func ShippedLayer() (Layer, error) {
	files, err := collectFiles(policies.FS)
	if err != nil {
		return Layer{}, module.Stop(module.CodeMissing, "cannot read the shipped policy", "reinstall fumehood", err)
	}
	return Layer{Name: DefaultLayer, Role: Grants, Files: files}, nil
}

// shipped is the policy that fumehood ships.
var shipped = sync.OnceValues(func() (Layer, error) {
	l, err := ShippedLayer()
	l.Files, l.shipped = append(l.Files, File{optionsFile, []byte(policies.Options)}), true
	return l.withoutTests(), err
})

// orderLayers puts the shipped default first if no other layer grants.
//
// It is first, too, if the layer that would grant is only observed.
func orderLayers(given []Layer, observe bool) ([]Layer, error) {
	granting := 0
	for _, l := range given {
		if l.Role == Grants {
			granting++
		}
	}
	if granting > 1 {
		return nil, module.Stop(module.CodeMissing, "two policy layers cannot both grant",
			"use one of them to allow, and the other to deny, ask and lower limits", nil)
	}
	layers := []Layer{}
	if granting == 0 || observe {
		l, err := shipped()
		if err != nil {
			return nil, err
		}
		layers = append(layers, l)
	}
	for _, l := range given {
		layers = append(layers, l.withoutTests())
	}
	return layers, nil
}

// withoutTests is l without tests and cases.
func (l Layer) withoutTests() Layer {
	var files []File
	for _, f := range l.Files {
		if f.Decides() {
			files = append(files, f)
		}
	}
	l.Files = files
	return l
}

// ReadDirectory reads the policy directory dir through a root that no symlink can leave. Its errors
// are *proposal.StopErrors.
func ReadDirectory(dir string) (Layer, error) {
	l := Layer{Name: dir}
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return l, module.Stop(module.CodeMissing, fmt.Sprintf("the policy directory %q does not exist", dir),
			"create it with at least one .rego file, or remove the flag", nil)
	case err != nil:
		return l, module.Stop(module.CodeMissing, fmt.Sprintf("cannot read the policy directory %q", dir),
			"make it readable", err)
	case !info.IsDir():
		return l, module.Stop(module.CodeSymlink, fmt.Sprintf("%q is not a directory", dir),
			"name the directory itself, not a symlink or a file", nil)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return l, module.Stop(module.CodeMissing, fmt.Sprintf("cannot open the policy directory %q", dir),
			"make it readable", err)
	}
	defer root.Close()
	if l.Files, err = collectFiles(root.FS()); err != nil {
		return l, inDir(dir, err)
	}
	if len(l.withoutTests().Files) == 0 {
		return l, module.Stop(module.CodeMissing, fmt.Sprintf("the policy directory %q contains no .rego file", dir),
			"add a rule, or remove the flag", nil)
	}
	return l, nil
}

var (
	errIrregular = errors.New("is a symlink or not a regular file")
	errTooLarge  = errors.New("is too large")
)

func inDir(dir string, err error) error {
	switch {
	case errors.Is(err, errIrregular):
		return module.Stop(module.CodeSymlink, fmt.Sprintf("invalid file in the policy directory %q", dir),
			"replace it with a regular file", err)
	case errors.Is(err, errTooLarge):
		return module.Stop(module.CodeTooLarge, fmt.Sprintf("the policy directory %q exceeds a limit", dir),
			hintTooLarge(), err)
	}
	return module.Stop(module.CodeMissing, fmt.Sprintf("cannot read the policy directory %q", dir), "make it readable",
		err)
}

func hintTooLarge() string {
	return fmt.Sprintf("use at most %d files, %d KiB for each file of rules, and %d KiB in total", maxFiles,
		maxFile>>10, maxTotal>>10)
}

// collected are the extensions of a layer's files.
var collected = []string{".rego", ".yaml", ".yml"}

// IsLayerFile reports whether a file of this name is part of a layer. What regal, a linter, keeps in .regal is not.
func IsLayerFile(name string) bool {
	return !strings.HasPrefix(name, ".regal/") &&
		(slices.Contains(collected, path.Ext(name)) || path.Base(name) == "data.json")
}

// collectFiles reads a layer's files in the order of their names.
func collectFiles(fsys fs.FS) ([]File, error) {
	var files []File
	total := 0
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if !d.Type().IsRegular() {
			return fmt.Errorf("%q %w", name, errIrregular)
		}
		if !IsLayerFile(name) {
			return nil
		}
		content, err := readFile(fsys, name)
		if err != nil {
			return err
		}
		files = append(files, File{filepath.ToSlash(name), content})
		if total += len(content); total > maxTotal || len(files) > maxFiles {
			return fmt.Errorf("the total %w", errTooLarge)
		}
		return nil
	})
	return files, err
}

// FileLimit is the maximum size of a file: data may use all of MaxTotal.
func FileLimit(name string) int {
	if (File{Name: name}).HoldsData() {
		return maxTotal
	}
	return maxFile
}

func readFile(fsys fs.FS, name string) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	limit := FileLimit(name)
	content, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	if err == nil && len(content) > limit {
		err = fmt.Errorf("%q %w", name, errTooLarge)
	}
	return content, err
}

// FromFiles is the layer of these files, as ReadDirectory returns that of a directory: with the same
// limits, sorted by name, without files that are not part of a layer. Two files with the
// same name are an error. Its errors are *proposal.StopErrors.
func FromFiles(name string, all []File) (Layer, error) {
	l, total := Layer{Name: name}, 0
	for _, f := range all {
		if !IsLayerFile(f.Name) {
			continue
		}
		l.Files = append(l.Files, f)
		if total += len(f.Content); total > maxTotal || len(l.Files) > maxFiles || len(f.Content) > FileLimit(f.Name) {
			return l, module.Stop(module.CodeTooLarge, fmt.Sprintf("the policy %q exceeds a limit", name),
				hintTooLarge(), fmt.Errorf("%q, or the total, %w", f.Name, errTooLarge))
		}
	}
	slices.SortFunc(l.Files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	for i := 1; i < len(l.Files); i++ {
		if l.Files[i].Name == l.Files[i-1].Name {
			return l, module.Stop(module.CodeMissing,
				fmt.Sprintf("policy %q has two files named %q", name, l.Files[i].Name), "keep one of them", nil)
		}
	}
	if len(l.withoutTests().Files) == 0 {
		return l, module.Stop(module.CodeMissing, fmt.Sprintf("policy %q contains no .rego file", name),
			"add a rule, or remove the flag", nil)
	}
	return l, nil
}

// Contents returns the contents of the layer's files by name.
func (l Layer) Contents() map[string][]byte {
	all := make(map[string][]byte, len(l.Files))
	for _, f := range l.Files {
		all[f.Name] = f.Content
	}
	return all
}

// Digest covers the names and contents of the layer's files that decide.
func (l Layer) Digest() string {
	l = l.withoutTests()
	l.Role = Restricts
	return hexDigest(hashLayers([]Layer{l}, false))
}

// roles are the names of the roles, in order.
var roles = []string{Restricts: "restricts", Opens: "opens", Allows: "allows", Grants: "grants"}

// String is the role's name.
func (r Role) String() string { return roles[r] }

// ParseRole returns the role with this name.
func ParseRole(name string) (r Role, known bool) {
	i := slices.Index(roles, name)
	return Role(max(i, 0)), i >= 0
}

// digestLayers covers names and contents with their lengths, so that no two different sets of
// files have the same digest. The path of a layer's directory does not count. Its position, its
// role and whether it is only observed do, and that rules are observed no more: an approval under
// observed layers is not an approval under layers that have an effect.
func digestLayers(layers []Layer, observe bool, tools ...string) string {
	h := hashLayers(layers, observe, tools...)
	digestUntils(h, layers)
	return hexDigest(h)
}

func hexDigest(h hash.Hash) string { return "sha256:" + hex.EncodeToString(h.Sum(nil)) }

func hashLayers(layers []Layer, observe bool, tools ...string) hash.Hash {
	h := sha256.New()
	for _, name := range slices.Sorted(slices.Values(tools)) {
		fmt.Fprintf(h, "tool %d %s\n", len(name), name)
	}
	if observe {
		io.WriteString(h, "observe\n")
	}
	for i, s := range layers {
		fmt.Fprintf(h, "layer %d %d %d\n", i, s.Role, len(s.Files))
		files := slices.SortedFunc(slices.Values(s.Files),
			func(a, b File) int { return strings.Compare(a.Name, b.Name) })
		for _, f := range files {
			fmt.Fprintf(h, "%d %s %d\n", len(f.Name), f.Name, len(f.Content))
			h.Write(f.Content)
		}
	}
	return h
}
