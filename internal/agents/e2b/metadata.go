// SPDX-License-Identifier: Apache-2.0

package e2b

import (
	"maps"
	"net/http"
	"strings"
	"sync"
)

// fileMetadata is what clients have attached to files, by path. It is not in the sandbox.
type fileMetadata struct {
	mu   sync.Mutex
	list map[string]map[string]string
}

// The bounds of metadata: of one file, and how many files have some.
const (
	maxFileMetadata  = 4096
	maxMetadataFiles = 1000
	metadataHeader   = "X-Metadata-"
)

// readMetadata returns the metadata that the headers of an upload have.
func readMetadata(headers http.Header) (map[string]string, error) {
	found, size := map[string]string{}, 0
	for name, values := range headers {
		key, has := strings.CutPrefix(name, metadataHeader)
		if !has {
			continue
		}
		if key == "" || strings.ContainsFunc(values[0], func(c rune) bool { return c < ' ' || c > '~' }) {
			return nil, refuseRequest(invalidArgument, "metadata: only printable ASCII characters")
		}
		if size += len(key) + len(values[0]); size > maxFileMetadata {
			return nil, refuseRequest(invalidArgument, "metadata: more than %d bytes", maxFileMetadata)
		}
		found[strings.ToLower(key)] = values[0]
	}
	return found, nil
}

// of returns the metadata of the file at path, nil for none.
func (m *fileMetadata) of(path string) map[string]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.list[path])
}

// set replaces the metadata of the file at path. What does not fit is not kept.
func (m *fileMetadata) set(path string, metadata map[string]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.list == nil {
		m.list = map[string]map[string]string{}
	}
	if delete(m.list, path); len(metadata) > 0 && len(m.list) < maxMetadataFiles {
		m.list[path] = metadata
	}
}

// remove forgets the metadata of the file at path and of those below.
func (m *fileMetadata) remove(path string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.list, func(name string, _ map[string]string) bool {
		return name == path || strings.HasPrefix(name, path+"/")
	})
}

// move gives the metadata of the file at from to the one at to.
func (m *fileMetadata) move(from, to string) {
	metadata := m.of(from)
	m.remove(from)
	m.remove(to)
	m.set(to, metadata)
}
