// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"context"
	"fmt"
	"io"
	"net"

	"github.com/fumehood/fumehood/internal/kit/localhttp"
)

// A Transport says where a server's clients are: at the other end of In and Out, or, if HTTP
// is not "", at that address of the loopback interface with a token of the file TokenFile.
type Transport struct {
	HTTP, TokenFile string
	Tenants         bool // a token may be followed by tenant=NAME: see Options.Gate
	In              io.Reader
	Out             io.Writer
	// Serving is called with the address when a server over HTTP is about to serve.
	Serving func(addr string)

	listener net.Listener
	tokens   localhttp.Tokens
}

// Open reads the tokens and listens, so that what is wrong with them is an error before there
// is a Server. Its error is a *proposal.StopError.
func (t *Transport) Open(ctx context.Context) (err error) {
	if t.HTTP == "" {
		return nil
	}
	if t.tokens, err = localhttp.ReadTokens(t.TokenFile, "mcp.token", t.Tenants); err != nil {
		return err
	}
	t.listener, err = localhttp.ListenLoopback(ctx, t.HTTP, "mcp.address")
	return err
}

// Serve serves s's clients until ctx ends, or the only one has gone. t must be open.
func (t *Transport) Serve(ctx context.Context, s *Server) error {
	if t.HTTP == "" {
		return s.ServeStdio(ctx, t.In, t.Out)
	}
	if t.Serving != nil {
		t.Serving(fmt.Sprintf("http://%s", t.listener.Addr()))
	}
	return s.ServeStreamableHTTP(ctx, t.listener, t.tokens)
}
