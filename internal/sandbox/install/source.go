// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

const modulePath = "github.com/fumehood/fumehood"

// sourceRoots contain everything in this module that goes into an installation
// or determines how it is made. A test compares them with the go command's list.
var sourceRoots = []string{
	"go.mod",
	"go.sum",
	"cmd/fumehood-init",
	"cmd/fumehood-runsc",
	"internal/kit/elf",
	"internal/kit/frame",
	"internal/kit/listing",
	"internal/kit/pathwalk",
	"internal/watch/monitor/calls",
	"internal/watch/monitor/sentry",
	"internal/watch/monitor/wire",
	"internal/sandbox/guest",
	"internal/sandbox/install/build.go",
	"internal/sandbox/install/prewarmer.go",
	"internal/sandbox/install/prewarmer.c.txt",
}

// sourceTree returns the directory of the module that this program was compiled
// from, if it still exists. The compiler recorded it in the program; a program
// built with -trimpath has none. The working directory is never used.
func sourceTree() (string, error) {
	_, file, _, ok := runtime.Caller(0)
	if !ok || !filepath.IsAbs(file) {
		return "", errors.New("this program does not record where its source is")
	}
	root := filepath.Join(filepath.Dir(file), "..", "..", "..")
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return "", fmt.Errorf("cannot find this program's source: %v", err)
	}
	if !bytes.HasPrefix(text, []byte("module "+modulePath+"\n")) {
		return "", fmt.Errorf("%q is not the source of fumehood", root)
	}
	return root, nil
}

// sourceKey identifies what would be built from root for a platform: it changes
// with our sources, the versions of all modules, the compiler and the platform.
func sourceKey(root, platform string) (string, error) {
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\n%s\n%s\n", GVisorVersion, runtime.Version(), platform)
	for _, name := range sourceRoots {
		err := filepath.WalkDir(filepath.Join(root, name), func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) && path == filepath.Join(root, name) {
				return nil // not every root exists in every version
			}
			if err != nil || d.IsDir() || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			// Not a prefix that is cut off: "." is none.
			inside, err := filepath.Rel(root, path)
			fmt.Fprintf(sum, "%q %d\n%s", "/"+filepath.ToSlash(inside), len(text), text)
			return err
		})
		if err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(sum.Sum(nil))[:32], nil
}
