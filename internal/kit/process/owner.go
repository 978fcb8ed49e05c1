// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// An Owner receives the files that a run made; nil changes nothing.
type Owner struct{ uid, gid int }

// ParseOwner reads UID:GID; of "" it is nil. Its error is a *proposal.StopError.
func ParseOwner(text string) (*Owner, error) {
	if text == "" {
		return nil, nil
	}
	uid, gid, _ := strings.Cut(text, ":")
	u, err := strconv.ParseUint(uid, 10, 31)
	g, err2 := strconv.ParseUint(gid, 10, 31)
	if err != nil || err2 != nil {
		return nil, &proposal.StopError{Code: "owner.invalid",
			Message: fmt.Sprintf("invalid owner %q: want UID:GID", text),
			Hint:    "give the numbers of a user and a group"}
	}
	return &Owner{int(u), int(g)}, nil
}

// UID returns the user.
func (o *Owner) UID() int { return o.uid }

// TakePaths gives o the paths and everything below them, a directory after what is in it: until
// then no other user can change what is there. A link is changed itself, never followed.
// Paths that do not exist are passed over.
func (o *Owner) TakePaths(paths ...string) error {
	if o == nil {
		return nil
	}
	var all []string
	var errs error
	for _, root := range paths {
		errs = errors.Join(errs, filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			all = append(all, path)
			return err
		}))
	}
	for _, path := range slices.Backward(all) {
		errs = errors.Join(errs, os.Lchown(path, o.uid, o.gid))
	}
	return errs
}
