// SPDX-License-Identifier: Apache-2.0

//go:build linux

package job

import (
	"archive/zip"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"path"
	"regexp"
	"strings"

	"github.com/fumehood/fumehood/pkg/plan"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// The limits of an artifact, which a job of an untrusted workflow may have written.
const (
	maxZip      = 64 << 20
	maxZipFiles = 10_000
	maxLog      = 128 << 20 // an exec takes about 1 KiB
)

func malformed(format string, args ...any) error {
	return &proposal.StopError{Code: "report.malformed", Message: "the artifact cannot be used: " + fmt.Sprintf(format, args...),
		Hint: "it comes from a workflow run that the pull request can change; nothing of it is shown"}
}

// numbered is the directory of one of several plans.
var numbered = regexp.MustCompile(`^(0|[1-9][0-9]?)$`)

func byNumber(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) }

// unzip reads the files of each plan out of an archive into memory, by the plan's
// directory; no path in it is used. All plans together may have what one may.
func unzip(data []byte) (map[string]map[string][]byte, error) {
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, malformed("it is no zip archive")
	}
	if len(z.File) > maxZipFiles {
		return nil, malformed("it has more than %d files", maxZipFiles)
	}
	limits := map[string]int64{planName: plan.MaxDocument, reportName: MaxReport, auditName: maxLog}
	bundles, room := map[string]map[string][]byte{}, int64(MaxReport+maxLog+plan.MaxDocument)
	for _, f := range z.File {
		dir, name := path.Split(f.Name)
		dir = strings.TrimSuffix(dir, "/")
		limit, ours := limits[name]
		if !ours || dir != "" && !numbered.MatchString(dir) || f.Name != path.Join(dir, name) {
			continue
		}
		if bundles[dir] == nil {
			bundles[dir] = map[string][]byte{}
		}
		if _, twice := bundles[dir][name]; twice || !f.Mode().IsRegular() {
			return nil, malformed("%s is there twice, or is no file", name)
		}
		if bundles[dir][name], err = inflate(f, min(limit, room)); err != nil {
			return nil, err
		}
		room -= int64(len(bundles[dir][name]))
	}
	if len(bundles) == 0 || len(bundles) > maxPlans {
		return nil, malformed("it holds the reports of %d plans", len(bundles))
	}
	return bundles, nil
}

func inflate(f *zip.File, limit int64) ([]byte, error) {
	r, err := f.Open()
	if err != nil {
		return nil, malformed("%s cannot be read", f.Name)
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil || int64(len(data)) > limit {
		return nil, malformed("%s is damaged or larger than %d bytes", f.Name, limit)
	}
	return data, nil
}
