// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/fumehood/fumehood/internal/sandbox"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// ParseMount reads SRC[:DST]. Its error is a *proposal.StopError.
func ParseMount(text string) (sandbox.Bind, error) {
	source, target, _ := strings.Cut(text, ":")
	if strings.HasSuffix(text, ":") {
		return sandbox.Bind{}, mountError(text, nil)
	}
	bind, err := BindMount(source, target)
	if err != nil {
		return bind, mountError(text, errors.Unwrap(err))
	}
	return bind, nil
}

func mountError(text string, err error) error {
	return &proposal.StopError{Code: "mount.invalid",
		Message: fmt.Sprintf("invalid mount %q: want DIRECTORY or DIRECTORY:/PATH/INSIDE", text),
		Hint:    "give for example ~/go/pkg/mod:/home/fumehood/go/pkg/mod (--mount, or Options.MountsUnsafe)", Err: err}
}

// BindMount returns how a sandbox shows the host's directory source at target, or at the same path if
// target is empty. It follows links of the source: the sandbox follows none. Its error is a
// *proposal.StopError.
func BindMount(source, target string) (sandbox.Bind, error) {
	abs, err := filepath.Abs(source)
	if err != nil {
		return sandbox.Bind{}, err
	}
	if target == "" {
		target = abs
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		abs = real
	}
	info, err := os.Stat(abs)
	if err != nil || !info.IsDir() || !isMountTarget(target) {
		return sandbox.Bind{}, mountError(source+":"+target, err)
	}
	return sandbox.Bind{Source: abs, Target: target}, nil
}

// isMountTarget refuses the places that the sandbox provides itself.
func isMountTarget(path string) bool {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path || path == "/" {
		return false
	}
	for _, own := range []string{"/proc", "/sys", "/dev", "/.fumehood", "/workspace", "/etc", "/tmp"} {
		if path == own || strings.HasPrefix(path, own+"/") {
			return false
		}
	}
	return true
}
