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

	"github.com/fumehood/fumehood/pkg/policy"
)

// A Recipe says what a bundle is made of.
type Recipe struct {
	Files    []policy.File
	Revision string
	Roots    []string // none is all of data
	Tests    bool     // take what only tries the policy along
}

// Build makes a bundle that opa reads too. The same recipe gives the same bytes.
func Build(r Recipe) ([]byte, error) {
	m := bundle.Manifest{Revision: r.Revision}
	m.Init()
	if len(r.Roots) > 0 {
		m.Roots = &r.Roots
	}
	version := 1
	m.RegoVersion = &version
	manifest, err := json.Marshal(m)
	if err != nil {
		return nil, stop(CodeBundle, "", err, "the manifest cannot be written")
	}
	files := []policy.File{{Name: manifestName, Content: append(manifest, '\n')}}
	for _, f := range r.Files {
		if policy.Collects(f.Name) && (r.Tests || f.Decides()) {
			files = append(files, f)
		}
	}
	data, err := pack(files)
	if err != nil {
		return nil, err
	}
	_, err = Open("the bundle", data, Options{}) // what we would refuse is not made
	return data, err
}

// pack writes files in the order of their names, with nothing of who made them and when.
func pack(files []policy.File) ([]byte, error) {
	slices.SortFunc(files, func(a, b policy.File) int { return strings.Compare(a.Name, b.Name) })
	var out bytes.Buffer
	zipped, _ := gzip.NewWriterLevel(&out, gzip.BestCompression) // the level is one
	archive := tar.NewWriter(zipped)
	for _, f := range files {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: "/" + f.Name, Mode: 0o644, Size: int64(len(f.Content)), ModTime: time.Unix(0, 0), Format: tar.FormatPAX}
		err := archive.WriteHeader(h)
		if err == nil {
			_, err = archive.Write(f.Content)
		}
		if err != nil {
			return nil, stop(CodeBundle, "", err, "%q cannot be packed", f.Name)
		}
	}
	if err := archive.Close(); err != nil {
		return nil, stop(CodeBundle, "", err, "the bundle cannot be written")
	}
	if err := zipped.Close(); err != nil {
		return nil, stop(CodeBundle, "", err, "the bundle cannot be written")
	}
	return out.Bytes(), nil
}
