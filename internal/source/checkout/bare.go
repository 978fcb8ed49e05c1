// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// initBareRepository writes the bare repository by hand: git init would copy templates.
func (s *Store) initBareRepository(digits int) error {
	s.making.Lock()
	defer s.making.Unlock()
	switch s.digits {
	case digits:
		return nil
	case 0:
		if err := writeBare(s.bare, digits); err != nil {
			return newStopError(CodeWrite, "", err, "cannot make the store")
		}
		s.digits = digits
		return nil
	}
	return newStopError(CodeCommit, "", nil, "the store has ids of %d digits, not of %d", s.digits, digits)
}

func writeBare(bare string, digits int) error {
	for _, folder := range []string{"objects/pack", "refs"} {
		if err := os.MkdirAll(filepath.Join(bare, folder), 0o700); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(bare, "config"), []byte(formatConfig(digits, true)), 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(bare, "HEAD"), []byte("ref: refs/heads/none\n"), 0o600)
}

// formatConfig returns the settings of a repository's config that define its
// storage format.
func formatConfig(digits int, bare bool) string {
	if digits == 64 {
		return fmt.Sprintf("[core]\n\trepositoryformatversion = 1\n\tbare = %t\n[extensions]\n\tobjectFormat = sha256\n", bare)
	}
	return fmt.Sprintf("[core]\n\trepositoryformatversion = 0\n\tbare = %t\n", bare)
}

func (s *Store) measureSize() int64 {
	var sum int64
	filepath.WalkDir(s.bare, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil { // a file may just have been renamed
				sum += info.Size()
			}
		}
		return nil
	})
	return sum
}

// removeParts removes the temporary files of a fetch that was killed.
func (s *Store) removeParts() {
	for _, pattern := range []string{"objects/pack/tmp_*", "objects/tmp_*", "objects/*/tmp_*", "shallow.lock"} {
		parts, _ := filepath.Glob(filepath.Join(s.bare, pattern))
		for _, part := range parts {
			os.Remove(part)
		}
	}
}
