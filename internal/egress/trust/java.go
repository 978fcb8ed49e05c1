// SPDX-License-Identifier: Apache-2.0

package trust

import (
	"bytes"
	"crypto/sha1" // required by the format; not relied on for security
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"io"
	"path/filepath"
	"time"
	"unicode/utf16"
)

// truststores are the paths where Java looks for trusted certificates: it supports no
// variable, and no file in the usual format.
var truststores = []string{"/etc/ssl/certs/java/cacerts", "/etc/pki/java/cacerts",
	"/usr/lib/jvm/*/lib/security/cacerts", "/usr/lib/jvm/*/jre/lib/security/cacerts",
	"/opt/hostedtoolcache/Java_*/*/*/lib/security/cacerts"}

// JavaStores returns the paths of the truststores of this host.
func JavaStores() []string {
	var paths []string
	for _, pattern := range truststores {
		found, _ := filepath.Glob(pattern) // the patterns are well-formed
		paths = append(paths, found...)
	}
	return paths
}

// JavaStore converts a PEM bundle to JKS, which every version of Java reads, with
// Java's default password.
//
// The format: magic, version 2 and a count; for each certificate a tag, an alias, a
// time, its type and its bytes; a digest with a constant salt.
func JavaStore(bundle []byte) []byte {
	var entries bytes.Buffer
	count := uint32(0)
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		count++
		put(&entries, uint32(2))
		putText(&entries, fmt.Sprintf("certificate-%d", count))
		put(&entries, uint64(time.Now().UnixMilli()))
		putText(&entries, "X.509")
		put(&entries, uint32(len(block.Bytes)))
		entries.Write(block.Bytes)
	}
	var b bytes.Buffer
	put(&b, []uint32{0xfeedfeed, 2, count})
	b.Write(entries.Bytes())
	sum := sha1.New()
	put(sum, utf16.Encode([]rune("changeit")))
	sum.Write([]byte("Mighty Aphrodite"))
	sum.Write(b.Bytes())
	return sum.Sum(b.Bytes())
}

func put(w io.Writer, value any) { _ = binary.Write(w, binary.BigEndian, value) } // to memory

func putText(w io.Writer, text string) {
	put(w, uint16(len(text)))
	put(w, []byte(text))
}
