// SPDX-License-Identifier: Apache-2.0

// Command reach measures one way to a server, for BenchmarkNetwork. It prints how many MiB
// a second one long answer had, and what a new connection with a short answer took, in
// milliseconds: in total, and up to the end of the lookup, of the connection, and of the
// TLS handshake. Times are medians.
package main

import (
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"slices"
	"time"
)

var (
	proxy = flag.String("proxy", "", "address of a CONNECT proxy")
	size  = flag.Int("size", 0, "bytes of the long answer; 0 for none")
	count = flag.Int("count", 0, "new connections")
	h2    = flag.Bool("h2", false, "use HTTP/2 over TLS")
)

func main() {
	flag.Parse()
	if err := measure(flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func measure(base string) error {
	t := &http.Transport{DisableKeepAlives: true, ForceAttemptHTTP2: *h2, DisableCompression: true}
	if *proxy != "" {
		t.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: *proxy})
	}
	var rate float64
	if *size > 0 {
		took, err := get(t, fmt.Sprint(base, "/", *size), *size)
		if err != nil {
			return err
		}
		rate = float64(*size) / (1 << 20) / took[0].Seconds()
	}
	all := make([][]time.Duration, phases)
	for range *count {
		took, err := get(t, base+"/1", 1)
		if err != nil {
			return err
		}
		for i := range all {
			all[i] = append(all[i], took[i])
		}
		time.Sleep(5 * time.Millisecond)
	}
	fmt.Println(rate, median(all[0]), median(all[1]), median(all[2]), median(all[3]))
	return nil
}

func median(took []time.Duration) float64 {
	if len(took) == 0 {
		return 0
	}
	slices.Sort(took)
	return took[len(took)/2].Seconds() * 1000
}

const phases = 4

// get returns when a request had ended: all of it, the lookup, the connection, and the TLS
// handshake.
func get(t *http.Transport, from string, want int) (took [phases]time.Duration, err error) {
	begin := time.Now()
	ends := func(phase int) { took[phase] = time.Since(begin) }
	trace := httptrace.ClientTrace{
		DNSDone:          func(httptrace.DNSDoneInfo) { ends(1) },
		ConnectDone:      func(string, string, error) { ends(2) },
		TLSHandshakeDone: func(tls.ConnectionState, error) { ends(3) },
	}
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(context.Background(), &trace), http.MethodGet, from, nil)
	if err != nil {
		return took, err
	}
	r, err := (&http.Client{Transport: t}).Do(req)
	if err != nil {
		return took, err
	}
	defer r.Body.Close()
	n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, r.Body, make([]byte, 256<<10))
	if err == nil && (int(n) != want || r.StatusCode != http.StatusOK) {
		err = fmt.Errorf("%s: %s, %d bytes", from, r.Status, n)
	}
	ends(0)
	return took, err
}
