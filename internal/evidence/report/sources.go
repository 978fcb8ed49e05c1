// SPDX-License-Identifier: Apache-2.0

package report

import (
	"errors"
	"io/fs"
	"os"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// maxSources is the maximum number of files that links and annotations can be about.
const maxSources = 100_000

var errEnough = errors.New("enough files")

// SourcesIn lists the regular files below dir, as slash-separated paths relative to it,
// without the directory .git. It follows no links and lists at most 100,000 files.
func SourcesIn(dir string) (files []string, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, unlistedError(err)
	}
	defer root.Close()
	err = fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && path == ".":
			return err
		case err != nil:
			return nil // a directory that cannot be read has no files to name
		case d.IsDir() && d.Name() == ".git":
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		case len(files) == maxSources:
			return errEnough
		}
		files = append(files, path)
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, unlistedError(err)
	}
	return files, nil
}

func unlistedError(err error) error {
	return &proposal.StopError{Code: "report.workspace", Message: "cannot list the files of the workspace",
		Hint: "give a directory with the pull request's code", Err: err}
}
