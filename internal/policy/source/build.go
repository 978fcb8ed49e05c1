// SPDX-License-Identifier: Apache-2.0

package source

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/bundle"

	"github.com/fumehood/fumehood/internal/policy"
)

// A Recipe is the input of a bundle.
type Recipe struct {
	Files    []policy.File
	Revision string
	Roots    []string // none means all of data
	Tests    bool     // include tests and cases
	// MaxCopyAge is that of the Bundle, at most LimitCopyAge.
	MaxCopyAge time.Duration
}

// Build makes a bundle that opa can read, too. The same recipe gives the same bytes.
func Build(r Recipe) ([]byte, error) {
	m := bundle.Manifest{Revision: r.Revision}
	m.Init()
	if len(r.Roots) > 0 {
		m.Roots = &r.Roots
	}
	if r.MaxCopyAge != 0 {
		m.Metadata = map[string]any{copyAgeField: r.MaxCopyAge.String()}
	}
	version := 1
	m.RegoVersion = &version
	manifest, err := json.Marshal(m)
	if err != nil {
		return nil, stopError(CodeBundle, "", err, "cannot encode the manifest")
	}
	files := []policy.File{{Name: manifestName, Content: append(manifest, '\n')}}
	for _, f := range r.Files {
		if policy.IsLayerFile(f.Name) && (r.Tests || f.Decides()) {
			files = append(files, f)
		}
	}
	data, err := packFiles(files)
	if err != nil {
		return nil, err
	}
	_, err = Open("the bundle", data, Options{}) // never make a bundle that Open refuses
	return data, err
}

// packFiles writes files sorted by name, without times and owners.
func packFiles(files []policy.File) ([]byte, error) {
	slices.SortFunc(files, func(a, b policy.File) int { return strings.Compare(a.Name, b.Name) })
	var out bytes.Buffer
	zipped, _ := gzip.NewWriterLevel(&out, gzip.BestCompression) // the level is valid
	archive := tar.NewWriter(zipped)
	for _, f := range files {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: "/" + f.Name, Mode: 0o644, Size: int64(len(f.Content)),
			ModTime: time.Unix(0, 0), Format: tar.FormatPAX}
		err := archive.WriteHeader(h)
		if err == nil {
			_, err = archive.Write(f.Content)
		}
		if err != nil {
			return nil, stopError(CodeBundle, "", err, "cannot pack %q", f.Name)
		}
	}
	if err := archive.Close(); err != nil {
		return nil, stopError(CodeBundle, "", err, "cannot write the bundle")
	}
	if err := zipped.Close(); err != nil {
		return nil, stopError(CodeBundle, "", err, "cannot write the bundle")
	}
	return out.Bytes(), nil
}
