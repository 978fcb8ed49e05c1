// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/fumehood/fumehood/internal/kit/terminal"
)

// belowTop returns a warning if the workspace is a directory below the top of a git repository,
// else "".
func belowTop(workspace string) string {
	path, err := filepath.Abs(workspace)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil || isTop(path) {
		return ""
	}
	for top := filepath.Dir(path); ; top = filepath.Dir(top) {
		if isTop(top) {
			below, _ := filepath.Rel(top, path)
			return fmt.Sprintf("the workspace %s is below the top of the repository %s: inside, the files above it and git's history are missing. Fix: --workspace %[2]s, and cwd: %[3]s in the proposals",
				terminal.QuoteWord(path), terminal.QuoteWord(top), terminal.QuoteWord(below))
		}
		if top == filepath.Dir(top) {
			return ""
		}
	}
}

// isTop reports whether dir has a git directory, or the file that names that of a work tree.
func isTop(dir string) bool {
	git := filepath.Join(dir, ".git")
	info, err := os.Lstat(git)
	if err != nil || info.Mode().IsRegular() {
		return err == nil
	}
	_, err = os.Lstat(filepath.Join(git, "HEAD"))
	return err == nil
}
