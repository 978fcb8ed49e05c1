// SPDX-License-Identifier: Apache-2.0

package github

import (
	"bytes"
	"io"
	"net/http"
	"sync"
)

// The cache's bounds, in bytes.
const (
	maxCache = 16 << 20
	maxETag  = 512
)

// A cache keeps responses by their media type and URL. A response is used only after GitHub has
// confirmed that it is still current.
type cache struct {
	mu      sync.Mutex
	max     int
	size    int
	entries map[string]entry
}

// An entry is a response with status 200. It is immutable.
type entry struct {
	etag   string
	header http.Header
	body   []byte
}

func newCache(max int) *cache { return &cache{max: max, entries: map[string]entry{}} }

func (c *cache) get(key string) (entry, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[key]
	return e, ok
}

// put stores e. If there is no room, all other entries are dropped: a run reads few
// pages, repeatedly, so a full cache is one that does not help.
func (c *cache) put(key string, e entry) {
	if e.etag == "" || len(e.etag) > maxETag || len(e.body) > c.max/4 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.size -= len(c.entries[key].body)
	if c.size+len(e.body) > c.max {
		clear(c.entries)
		c.size = 0
	}
	c.entries[key] = e
	c.size += len(e.body)
}

func (e entry) cachedResponse(req *http.Request) *http.Response {
	return stripRateLimit(req, &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: e.header, Body: io.NopCloser(bytes.NewReader(nil)),
	}, e.body)
}
