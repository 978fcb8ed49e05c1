// SPDX-License-Identifier: Apache-2.0

package githubtest

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// cutPage cuts one page out of r.list, with Link headers like GitHub's: they use the
// repository's number, and only existing pages are linked.
func (s *Server) cutPage(c *call, r reply, fault *Fault) reply {
	page, size := queryNumber(c.r, "page", 1), min(queryNumber(c.r, "per_page", 30), 100)
	pushed := s.countShifted(c.r.URL.Path, page, fault)
	last := max(1, (len(r.list)+size-1)/size) + pushed
	from := min((page-1-pushed)*size, len(r.list))
	items := append([]any{}, r.list[max(0, from):min(max(0, from)+size, len(r.list))]...)
	if page > last {
		items = []any{}
	}
	r.body = items
	if r.key != "" {
		r.body = obj{"total_count": len(r.list), r.key: items}
	}
	if link := s.linkHeader(c, page, size, last, fault); link != "" {
		r.header = http.Header{"Link": {link}}
	}
	return r
}

// countShifted returns by how many pages a list was shifted while it was being read. A
// reader that starts again at page 1 sees the list as it is.
func (s *Server) countShifted(path string, page int, fault *Fault) int {
	if page == 1 {
		delete(s.shifted, path)
		return 0
	}
	if fault != nil && fault.Kind == DuplicatePage {
		s.shifted[path]++
	}
	return s.shifted[path]
}

func (s *Server) linkHeader(c *call, page, size, last int, fault *Fault) string {
	path := c.r.URL.Path
	if c.repo != nil {
		path = strings.Replace(path, "/repos/"+c.params["owner"]+"/"+c.params["repo"],
			fmt.Sprintf("/repositories/%d", c.repo.ID), 1)
	}
	host, after := s.URL, page+1
	if fault != nil && fault.Kind == LinkLoop {
		after, last = page, max(last, page+1)
	}
	if fault != nil && fault.Kind == LinkAway {
		host, last = "http://127.0.0.2:9", max(last, page+1)
	}
	var list []string
	add := func(rel string, n int) {
		query := c.r.URL.Query()
		query.Set("page", strconv.Itoa(n))
		list = append(list, fmt.Sprintf(`<%s%s?%s>; rel=%q`, host, path, query.Encode(), rel))
	}
	if page > 1 {
		add("prev", min(page-1, last))
	}
	if page < last {
		add("next", after)
		add("last", last)
	}
	if page > 1 {
		add("first", 1)
	}
	return strings.Join(list, ", ")
}

// queryNumber reads a query parameter as GitHub does: anything that is not a number is
// ignored.
func queryNumber(r *http.Request, name string, otherwise int) int {
	n, err := strconv.Atoi(r.URL.Query().Get(name))
	if err != nil || n < 1 {
		return otherwise
	}
	return n
}

// countRequest implements the primary rate limit: so many requests an hour.
func (t *Token) countRequest(quota int, now time.Time, counts bool) (http.Header, bool) {
	if t.since.IsZero() || now.Sub(t.since) >= time.Hour {
		t.since, t.used = now, 0
	}
	exhausted := counts && t.used >= quota
	if counts && !exhausted {
		t.used++
	}
	header := http.Header{}
	limitHeaders(header, quota, t.used, t.resetTime())
	return header, exhausted
}

func (t *Token) resetTime() time.Time { return t.since.Add(time.Hour) }

// refundRequest is for a 304 response, which does not count.
func (t *Token) refundRequest() {
	if t.used > 0 {
		t.used--
	}
}

func limitHeaders(h http.Header, limit, used int, reset time.Time) {
	h.Set("X-Ratelimit-Limit", strconv.Itoa(limit))
	h.Set("X-Ratelimit-Remaining", strconv.Itoa(max(0, limit-used)))
	h.Set("X-Ratelimit-Used", strconv.Itoa(used))
	h.Set("X-Ratelimit-Reset", strconv.FormatInt(reset.Unix(), 10))
	h.Set("X-Ratelimit-Resource", "core")
}
