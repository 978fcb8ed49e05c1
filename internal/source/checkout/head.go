// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"errors"
	"fmt"
	"strings"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// readHead reads the commit that a git directory's HEAD is at, and its ref, if any. It
// knows only refs that are stored in files.
func (s *search) readHead(folder string) (sha, ref string, err error) {
	data, err := s.readRegularFile(folder + "/HEAD")
	if err != nil || data == nil {
		return "", "", notCheckout("it has no HEAD", err)
	}
	text := strings.TrimRight(string(data), "\n")
	if idRE.MatchString(text) {
		return text, "", nil
	}
	ref, ok := strings.CutPrefix(text, "ref: ")
	if !ok || !plainRef(ref) {
		return "", "", notCheckout(fmt.Sprintf("its HEAD is %q", cutOutput(text)), nil)
	}
	loose, err := s.readRegularFile(folder + "/" + ref)
	if err != nil {
		return "", "", err
	}
	if loose != nil {
		sha = strings.TrimRight(string(loose), "\n")
	} else if sha, err = s.packedRef(folder, ref); err != nil {
		return "", "", err
	}
	if !idRE.MatchString(sha) {
		return "", "", notCheckout(fmt.Sprintf("its ref %q names no commit", cutOutput(ref)), nil)
	}
	return sha, ref, nil
}

func (s *search) packedRef(folder, ref string) (string, error) {
	data, err := s.readRegularFile(folder + "/packed-refs")
	if err != nil {
		return "", err
	}
	refs, err := parsePackedRefs(string(data))
	if err != nil {
		return "", notCheckout("its packed-refs cannot be read", err)
	}
	return refs[ref], nil
}

// parsePackedRefs reads "<id> <name>" lines, skipping the header and peeled tags.
func parsePackedRefs(data string) (map[string]string, error) {
	refs := map[string]string{}
	for line := range strings.Lines(data) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "#") || strings.HasPrefix(line, "^") {
			continue
		}
		id, name, ok := strings.Cut(line, " ")
		if !ok || !idRE.MatchString(id) || !plainRef(name) {
			return nil, fmt.Errorf("line %q", cutOutput(line))
		}
		if _, twice := refs[name]; twice {
			return nil, errors.New("a ref occurs twice")
		}
		refs[name] = id
	}
	return refs, nil
}

// plainRef checks a ref name like git check-ref-format, but more strictly: the name
// is used as a path.
func plainRef(name string) bool {
	if !strings.HasPrefix(name, "refs/") || len(name) > 1024 || badName(name) || strings.ContainsAny(name, " ~^:?*[") ||
		strings.Contains(name, "@{") || strings.HasSuffix(name, ".") {
		return false
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".lock") ||
			strings.Contains(part, "..") {
			return false
		}
	}
	return true
}

func notCheckout(why string, err error) error {
	var stopped *proposal.StopError
	if errors.As(err, &stopped) {
		return err
	}
	return newStopError(CodeNoCheckout, "check out with actions/checkout, or have fumehood do it", err,
		"cannot read the directory as a checkout: %s", why)
}
