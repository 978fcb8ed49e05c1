// SPDX-License-Identifier: Apache-2.0

package source

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"github.com/fumehood/fumehood/internal/policy"
)

// Bounds of a bundle. Package policy checks the bounds of a layer's files again.
const (
	maxArchive  = 8 << 20  // as received
	maxInflated = 16 << 20 // including the archive's padding
	maxEntries  = 4000
	maxOther    = 1 << 20 // for a file that is neither rules nor data
	maxName     = 512
)

// ReadFile reads the bytes of a bundle from a regular file, and never more than a bundle may
// have. Its error is a *proposal.StopError.
func ReadFile(name string) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, stopError(codeMissing, "check the spelling of its name", err, "cannot open the bundle %q", name)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, stopError(CodeSource, "name a file; the name of a policy directory must not end in .tar.gz", err,
			"%q is not a regular file", name)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxArchive+1))
	if err != nil {
		return nil, stopError(CodeSource, "make it readable", err, "cannot read the bundle %q", name)
	}
	if len(data) > maxArchive {
		return nil, tooLarge(name)
	}
	return data, nil
}

const hintTooLarge = "make it smaller: at most 8 MiB, 4000 entries, 256 KiB for each file of rules, and 4 MiB of rules and data"

func tooLarge(name string) error {
	return stopError(codeTooLarge, hintTooLarge, nil, "the bundle %s is too large", name)
}

var errTooLarge = errors.New("is too large")

// unpackArchive reads the files of a tar archive that is compressed once. Names may begin with a
// slash, as opa writes them, or not.
func unpackArchive(data []byte) ([]policy.File, error) {
	in := bytes.NewReader(data)
	unzipped, err := gzip.NewReader(in)
	if err != nil {
		return nil, err
	}
	unzipped.Multistream(false)
	flow := &io.LimitedReader{R: unzipped, N: maxInflated + 1}
	files, err := readEntries(tar.NewReader(flow))
	if err == nil {
		_, err = io.Copy(io.Discard, flow) // the checksum is at the end
	}
	switch {
	case flow.N <= 0:
		return nil, errTooLarge
	case err != nil:
		return nil, err
	case in.Len() > 0:
		return nil, errors.New("there is more after the archive")
	}
	return files, nil
}

func readEntries(archive *tar.Reader) ([]policy.File, error) {
	var files []policy.File
	seen := map[string]bool{}
	for range maxEntries {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if h.Typeflag == tar.TypeDir || h.Typeflag == tar.TypeXGlobalHeader {
			continue
		}
		f, err := readEntry(archive, h)
		if err != nil {
			return nil, err
		}
		if seen[f.Name] {
			return nil, &fs.PathError{Op: "entry", Path: f.Name, Err: errors.New("appears twice")}
		}
		seen[f.Name] = true
		files = append(files, f)
	}
	return nil, errTooLarge
}

func readEntry(archive *tar.Reader, h *tar.Header) (policy.File, error) {
	refuse := func(why string) (policy.File, error) {
		return policy.File{}, &fs.PathError{Op: "entry", Path: h.Name, Err: errors.New(why)}
	}
	name, ok := entryName(h.Name)
	if !ok {
		return refuse("is not a plain name")
	}
	if h.Typeflag != tar.TypeReg || isSparse(h) {
		return refuse("is not a regular file")
	}
	limit := int64(maxOther)
	if policy.IsLayerFile(name) {
		limit = int64(policy.FileLimit(name))
	}
	if h.Size > limit {
		return policy.File{}, &fs.PathError{Op: "entry", Path: name, Err: errTooLarge}
	}
	content, err := io.ReadAll(io.LimitReader(archive, limit))
	return policy.File{Name: name, Content: content}, err
}

// entryName is a name relative to the top of the bundle.
func entryName(name string) (string, bool) {
	if trimmed, ok := strings.CutPrefix(name, "./"); ok {
		name = trimmed
	} else {
		name = strings.TrimPrefix(name, "/") // as opa writes them
	}
	ok := fs.ValidPath(name) && name != "." && len(name) <= maxName && utf8.ValidString(name) &&
		!strings.Contains(name, `\`) &&
		!strings.ContainsFunc(name, func(r rune) bool { return unicode.Is(unicode.C, r) })
	return name, ok
}

// isSparse files claim to be larger than their content.
func isSparse(h *tar.Header) bool {
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return true
		}
	}
	return false
}
