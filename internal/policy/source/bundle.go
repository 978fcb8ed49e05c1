// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/bundle"
	"github.com/open-policy-agent/opa/v1/util"

	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/policy/module"
)

// A Bundle is the content of a bundle.
type Bundle struct {
	Layer    policy.Layer
	Revision string
	Roots    []string
	SignedBy string // the key in Options that has signed all of it, or ""
	Signed   bool   // it contains a signature, verified or not
	// MaxCopyAge is how long its manifest allows a copy of it in place of one that cannot be read.
	MaxCopyAge time.Duration
}

// The files of a bundle that describe it.
const (
	manifestName   = ".manifest"
	signaturesName = ".signatures.json"
)

// Open reads a bundle. Name is for messages. With Options.Keys it must be signed, with
// Options.MinimumRevision new enough.
func Open(name string, data []byte, o Options) (Bundle, error) {
	if len(data) > maxArchive {
		return Bundle{}, tooLarge(name)
	}
	files, err := unpackArchive(data)
	if errors.Is(err, errTooLarge) {
		return Bundle{}, stopError(codeTooLarge, hintTooLarge, err, "the bundle %s is too large", name)
	}
	if err != nil {
		return Bundle{}, notBundle(name, err)
	}
	if err := checkFiles(files); err != nil {
		return Bundle{}, notBundle(name, err)
	}
	b := Bundle{Roots: []string{""}, Signed: fileNamed(files, signaturesName) != nil}
	if b.Layer, err = policy.FromFiles(name, files); err != nil {
		return Bundle{}, err
	}
	if _, err := b.Layer.Data(); err != nil { // before opa's verification expands YAML
		return Bundle{}, err
	}
	if len(o.Keys) > 0 {
		if b.SignedBy, err = o.Keys.verifySignature(name, files, o.Scope); err != nil {
			return Bundle{}, err
		}
	}
	if err := b.readManifest(name, files); err != nil {
		return Bundle{}, err
	}
	if err := refuseOlder(name, b.Revision, o.MinimumRevision); err != nil {
		return Bundle{}, err
	}
	return b, nil
}

func notBundle(name string, err error) error {
	return stopError(CodeBundle, "make it with fumehood policy bundle build, or with opa build, from Rego and data alone", err, "invalid policy bundle %s", name)
}

func fileNamed(files []policy.File, name string) []byte {
	for _, f := range files {
		if f.Name == name {
			return f.Content
		}
	}
	return nil
}

// refused are the names of files that opa would use for decisions and fumehood does not
// support.
var refused = map[string]string{
	"policy.wasm": "WebAssembly, which is not supported", "plan.json": "a plan, which is not supported",
	"plan.pb": "a plan, which is not supported", "patch.json": "a delta, which is not a complete policy",
}

// checkFiles refuses files that opa would use and fumehood would not.
func checkFiles(files []policy.File) error {
	for _, f := range files {
		base := path.Base(f.Name)
		why := refused[base]
		switch {
		case path.Ext(base) == ".wasm":
			why = refused["policy.wasm"]
		case strings.HasSuffix(f.Name, ".manifest.pb"):
			why = "a manifest in protocol buffers; write it as JSON"
		case strings.HasSuffix(f.Name, manifestName) && f.Name != manifestName,
			base == signaturesName && f.Name != signaturesName:
			why = "not at the top of the bundle"
		}
		if why != "" {
			return fmt.Errorf("%q is %s", f.Name, why)
		}
	}
	return nil
}

// readManifest reads the revision, and refuses modules and data outside the roots.
func (b *Bundle) readManifest(name string, files []policy.File) error {
	content := fileNamed(files, manifestName)
	if content == nil {
		return nil
	}
	var m bundle.Manifest
	if err := json.Unmarshal(content, &m); err != nil {
		return notBundle(name, fmt.Errorf("invalid manifest: %w", err))
	}
	m.Init()
	for i, root := range *m.Roots {
		(*m.Roots)[i] = strings.Trim(root, "/")
	}
	b.Revision, b.Roots = m.Revision, *m.Roots
	err := checkManifest(m)
	if err == nil {
		b.MaxCopyAge, err = readCopyAge(m.Metadata)
	}
	if err == nil {
		err = b.withinRoots()
	}
	if err != nil {
		return notBundle(name, err)
	}
	return nil
}

const maxRevision = 200

func checkManifest(m bundle.Manifest) error {
	roots := *m.Roots
	for i, a := range roots {
		for _, b := range roots[i+1:] {
			if bundle.RootPathsOverlap(a, b) {
				return fmt.Errorf("its roots %q and %q overlap", a, b)
			}
		}
	}
	versions := []int{}
	if m.RegoVersion != nil {
		versions = append(versions, *m.RegoVersion)
	}
	for _, v := range m.FileRegoVersions {
		versions = append(versions, v)
	}
	switch {
	case slices.ContainsFunc(versions, func(v int) bool { return v != 1 }):
		return errors.New("it is not Rego v1")
	case len(m.WasmResolvers) > 0:
		return errors.New("its manifest names WebAssembly, which is not supported")
	case len(m.Revision) > maxRevision:
		return errors.New("its revision is too long")
	case strings.ContainsFunc(m.Revision,
		func(r rune) bool { return !unicode.IsPrint(r) }): // it is shown in reports and comments
		return errors.New("its revision contains characters that are not printable")
	}
	return nil
}

// copyAgeField is the field of a manifest's metadata for Bundle.MaxCopyAge.
const copyAgeField = "fumehood_max_copy_age"

// LimitCopyAge is the maximum of Bundle.MaxCopyAge.
const LimitCopyAge = 30 * 24 * time.Hour

func readCopyAge(metadata map[string]any) (time.Duration, error) {
	value, ok := metadata[copyAgeField]
	if !ok {
		return 0, nil
	}
	text, _ := value.(string)
	age, err := time.ParseDuration(text)
	if err != nil || age < 0 || age > LimitCopyAge {
		return 0, fmt.Errorf("%s in its manifest is not a duration of at most %v", copyAgeField, LimitCopyAge)
	}
	return age, nil
}

func (b *Bundle) withinRoots() error {
	data, err := b.Layer.Data()
	if err != nil || slices.Contains(b.Roots, "") {
		return err
	}
	for _, f := range b.Layer.Files {
		if path.Ext(f.Name) != ".rego" {
			continue
		}
		pkg, err := packagePath(f)
		if err != nil {
			return err
		}
		if !bundle.RootPathsContain(b.Roots, pkg) {
			return fmt.Errorf("%q has the package %s, outside the roots of its manifest", f.Name,
				strings.ReplaceAll(pkg, "/", "."))
		}
	}
	return dataWithin(data, "", b.Roots)
}

// packagePath parses a module and returns its package. A panic of the parser is an error.
func packagePath(f policy.File) (pkg string, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%q makes the parser panic", f.Name)
		}
	}()
	m, err := ast.ParseModuleWithOpts(f.Name, string(f.Content),
		ast.ParserOptions{RegoVersion: ast.RegoV1, Capabilities: module.Capabilities()})
	if err != nil {
		return "", err
	}
	return strings.ReplaceAll(module.PackageOf(m), ".", "/"), nil
}

func dataWithin(data map[string]any, prefix string, roots []string) error {
	for name, value := range data {
		at := prefix + name
		if bundle.RootPathsContain(roots, at) {
			continue
		}
		below, ok := value.(map[string]any)
		above := slices.ContainsFunc(roots, func(root string) bool { return strings.HasPrefix(root, at+"/") })
		if !ok || !above {
			return fmt.Errorf("it has data at %q, outside the roots of its manifest", at)
		}
		if err := dataWithin(below, at+"/", roots); err != nil {
			return err
		}
	}
	return nil
}

// hashFile is opa's SHA-256 of a file: that of the document for data and the manifest, that of
// the bytes for everything else.
func hashFile(f policy.File) (bundle.FileInfo, error) {
	h, err := bundle.NewSignatureHasher(bundle.SHA256)
	if err != nil {
		return bundle.FileInfo{}, err
	}
	var value any = f.Content
	if bundle.IsStructuredDoc(f.Name) {
		value = nil
		if err := util.Unmarshal(f.Content, &value); err != nil {
			return bundle.FileInfo{}, err
		}
	}
	sum, err := h.HashFile(value)
	return bundle.NewFile(f.Name, fmt.Sprintf("%x", sum), string(bundle.SHA256)), err
}

// verifyFile compares a file with its signed hash, and removes it from the list.
func verifyFile(f policy.File, signed map[string]bundle.FileInfo) error {
	return bundle.VerifyBundleFile(f.Name, *bytes.NewBuffer(f.Content), signed)
}
