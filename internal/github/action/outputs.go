// SPDX-License-Identifier: Apache-2.0

package action

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/fumehood/fumehood/internal/kit/pattern"
)

// Outputs writes the step's outputs, each as
//
//	name<<delimiter
//	value
//	delimiter
//
// with a delimiter that is random each time and does not occur in the value. The
// file must be the runner's and must contain only what Outputs wrote: because of an
// unfinished line by another process, the runner would read values as names.
//
// It must not be copied after first use.
type Outputs struct {
	Path string
	// Random returns an unguessable word; nil means crypto/rand.Text.
	Random func() string

	written int64
}

var outputName = pattern.New(`^[a-z_-]{1,60}$`)

// maxOutput bounds one value; GitHub accepts 1 MiB for all outputs of a job.
const maxOutput = 256 << 10

// Set writes one output. Any text is a valid value if it is UTF-8 without NUL.
func (o *Outputs) Set(name, value string) error {
	switch {
	case !outputName.MatchString(name):
		return fmt.Errorf("invalid output name %q", name)
	case len(value) > maxOutput:
		return fmt.Errorf("invalid output %s: has %d bytes, at most %d fit", name, len(value), maxOutput)
	case !utf8.ValidString(value), strings.ContainsRune(value, 0):
		return fmt.Errorf("invalid output %s: is not valid text", name)
	}
	delimiter, err := o.newDelimiter(value)
	if err != nil {
		return err
	}
	entry := name + "<<" + delimiter + "\n" + value + "\n" + delimiter + "\n"
	if err := o.appendEntry(entry); err != nil {
		return fmt.Errorf("cannot set output %s: %w", name, err)
	}
	return nil
}

func (o *Outputs) newDelimiter(value string) (string, error) {
	random := o.Random
	if random == nil {
		random = rand.Text
	}
	for range 10 {
		d := "fumehood_" + random()
		if len(d) >= len("fumehood_")+16 && plainName.MatchString(d) && !strings.Contains(value, d) {
			return d, nil
		}
	}
	return "", errors.New("cannot find a delimiter that is not in the value")
}

func (o *Outputs) appendEntry(entry string) error {
	f, size, err := openOwn(o.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	if size != o.written {
		return fmt.Errorf("file %q has %d bytes from another process", o.Path, size-o.written)
	}
	n, err := io.WriteString(f, entry)
	o.written += int64(n)
	if err != nil {
		return err
	}
	return f.Close()
}

// openOwn opens one of the runner's files for appending. The file must exist: it is
// not created. Links are not followed, and it must have only one name.
func openOwn(path string) (*os.File, int64, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil && !ownFile(info) {
		err = fmt.Errorf("file %q is not the runner's own regular file", path)
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

func ownFile(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode().IsRegular() && stat.Nlink == 1
}
