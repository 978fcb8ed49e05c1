// SPDX-License-Identifier: Apache-2.0

package otlp

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/fumehood/fumehood/internal/kit/retry"
	"github.com/fumehood/fumehood/internal/kit/text"
)

const (
	protobuf      = "application/x-protobuf"
	maxAnswer     = 64 << 10
	maxTries      = 6
	maxUnanswered = 3 // tries without any response
	firstWait     = 300 * time.Millisecond
	minWord       = 6 // bytes of a part of a header's value that is redacted
)

// A lostError is a request that the collector did not accept.
type lostError struct {
	what     string
	answered bool // with a response: another path may succeed
}

func (e *lostError) Error() string { return e.what }

// again are the status codes that OTLP defines as retryable.
var again = []int{http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable,
	http.StatusGatewayTimeout}

// postMessage sends m and reads answer. It retries as OTLP requires, until ctx ends.
func (x *Exporter) postMessage(ctx context.Context, h http.Header, path string, m, answer proto.Message) error {
	body, err := proto.Marshal(m)
	if err != nil {
		return &lostError{what: "cannot encode: " + err.Error(), answered: true}
	}
	for try := 1; ; try++ {
		after, err := x.postOnce(ctx, h, path, body, answer)
		var lost *lostError
		switch {
		case err == nil || after < 0 || try == maxTries:
			return err
		case errors.As(err, &lost) && !lost.answered && try == maxUnanswered:
			return err
		}
		if after == 0 {
			after = retry.Backoff(firstWait, try)
		}
		if !retry.FitsDeadline(ctx, time.Now(), after) || retry.Sleep(ctx, after) != nil {
			return err // no time is left: the collector's last answer is the error
		}
	}
}

// postOnce sends body. With an error it returns how long the collector wants to wait: 0 if it
// did not say, less than 0 if there must be no other try.
func (x *Exporter) postOnce(
	ctx context.Context, h http.Header, path string, body []byte, answer proto.Message,
) (time.Duration, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, x.base.JoinPath(path).String(), bytes.NewReader(body))
	if err != nil {
		return -1, &lostError{what: "cannot make a request"}
	}
	r.Header = h.Clone()
	r.Header.Set("Content-Type", protobuf)
	if r.Header.Get("User-Agent") == "" {
		r.Header.Set("User-Agent", "fumehood/"+x.o.Version)
	}
	response, err := x.client.Do(r)
	if err != nil {
		why, after := describeUnreached(err)
		return after, &lostError{what: "it cannot be reached: " + why}
	}
	defer response.Body.Close()
	said, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch status := response.StatusCode; {
	case status != http.StatusOK:
		return retryAfter(response, time.Now()), &lostError{what: describeRefusal(path, status), answered: true}
	case err != nil:
		// perhaps accepted: no other try
		return -1, &lostError{what: "its answer to " + path + " was cut off", answered: true}
	case len(said) > maxAnswer:
		return -1, &lostError{what: fmt.Sprintf("its answer to %s has more than %d bytes", path, maxAnswer),
			answered: true}
	case len(said) > 0 && !strings.HasPrefix(response.Header.Get("Content-Type"), protobuf),
		proto.Unmarshal(said, answer) != nil:
		return -1, &lostError{what: "its answer to " + path + " is not OTLP: check that it is a collector",
			answered: true}
	}
	return 0, nil
}

// describeUnreached returns why there was no response, and how long to wait, like postOnce.
func describeUnreached(err error) (why string, after time.Duration) {
	var wrap *url.Error
	if errors.As(err, &wrap) {
		err = wrap.Err // without the address
	}
	var untrusted *tls.CertificateVerificationError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "it did not answer in time", 0
	case errors.As(err, &untrusted), errors.Is(err, errProxy):
		return text.Inline(err.Error(), 300), -1
	}
	return text.Inline(err.Error(), 300), 0
}

// describeRefusal describes the response's status. The rest of the response is not shown: it can
// be anything.
func describeRefusal(path string, status int) string {
	words := fmt.Sprintf("it answered %d %s to %s", status, http.StatusText(status), path)
	switch {
	case status >= 300 && status < 400:
		words += ", and redirects are not followed"
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		words += ": check the header"
	case status == http.StatusNotFound:
		words += ": check that it accepts this signal"
	}
	return words
}

// retryAfter returns how long to wait before another try, or less than 0 for none.
func retryAfter(r *http.Response, now time.Time) time.Duration {
	if !slices.Contains(again, r.StatusCode) {
		return -1
	}
	if wait, ok := retry.ParseRetryAfter(r.Header.Get("Retry-After"), now); ok {
		return max(wait, time.Millisecond)
	}
	return 0
}

// redactHeaders replaces the values of h in the collector's answer: an answer that quotes a
// token must not reach a job's log.
func redactHeaders(h http.Header, said string) string {
	for _, list := range h {
		for _, value := range list {
			for _, word := range append([]string{value}, strings.Fields(value)...) {
				if len(word) >= minWord {
					said = strings.ReplaceAll(said, word, "…")
				}
			}
		}
	}
	return said
}

func rejectedError(n int64, of int, what, why string) error {
	words := fmt.Sprintf("it rejected %d of %d %s", n, of, what)
	if why != "" {
		words += ": " + text.Inline(why, 200)
	}
	return &lostError{what: words, answered: true}
}
