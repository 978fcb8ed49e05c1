// SPDX-License-Identifier: Apache-2.0

package image

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"os"

	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// Verify returns an error unless the regular file at path, which is not a symbolic link,
// has digest, as Writer.Close returns it. It reads the whole file.
func Verify(path, digest string) error {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return cannotRead(path, err)
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return cannotRead(path, err)
	}
	got, _, err := digestOf(file)
	if err != nil {
		return cannotRead(path, err)
	}
	if got != digest {
		return &proposal.StopError{Code: CodeDigest,
			Message: fmt.Sprintf("the image %q is %s, not %s", path, got, digest),
			Hint:    "delete the image; it is made again"}
	}
	return nil
}

func cannotRead(path string, err error) error {
	return &proposal.StopError{Code: CodeWrite, Message: fmt.Sprintf("cannot read the image %q", path),
		Hint: "delete the image; it is made again", Err: err}
}

func digestOf(file *os.File) (string, int64, error) {
	hash := sha256.New()
	size, err := io.CopyBuffer(struct{ io.Writer }{hash}, io.NewSectionReader(file, 0, math.MaxInt64),
		make([]byte, 1<<18))
	return "sha256:" + hex.EncodeToString(hash.Sum(nil)), size, err
}
