// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"fmt"
	"regexp"
	"time"

	"github.com/BurntSushi/toml"
)

// A Config is the configuration of fumehood-claims, TOML:
//
//	owner   = "fumehood-0"  # of the claims: no other process may have it. It is the same after a restart
//	timeout = "60s"         # how long a request waits for a pod
//	longest = "24h"         # lifetime of a claim
//
//	[tenants.team-a]        # by namespace
//	pool    = "fumehood"    # its SandboxWarmPool
//	claims  = 50            # maximum at a time
type Config struct {
	Owner   string            `toml:"owner"`
	Timeout Duration          `toml:"timeout"`
	Longest Duration          `toml:"longest"`
	Tenants map[string]Tenant `toml:"tenants"`
}

// A Tenant is a namespace with a pool of sessions.
type Tenant struct {
	Pool   string `toml:"pool"`
	Claims int    `toml:"claims"`
}

// A Duration is written like 90s.
type Duration struct{ time.Duration }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) (err error) {
	d.Duration, err = time.ParseDuration(string(text))
	return err
}

// label matches values of labels, of at most 63 characters.
var label = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?$`)

// ReadConfig reads a file. owner is used if the file has none. Its error is a *proposal.StopError
// (claims.config).
func ReadConfig(path, owner string) (Config, error) {
	c := Config{Owner: owner, Timeout: Duration{time.Minute}, Longest: Duration{24 * time.Hour}}
	meta, err := toml.DecodeFile(path, &c)
	if err == nil && len(meta.Undecoded()) > 0 {
		err = fmt.Errorf("unknown key %q", meta.Undecoded()[0])
	}
	if err == nil {
		err = c.check()
	}
	if err != nil {
		return c, stop("claims.config", "cannot use the configuration "+path, "correct the file", err)
	}
	return c, nil
}

func (c Config) check() error {
	switch {
	case !label.MatchString(c.Owner):
		return fmt.Errorf("owner: %q is not the value of a label", c.Owner)
	case c.Timeout.Duration <= 0 || c.Longest.Duration <= 0:
		return fmt.Errorf("timeout and longest must be positive")
	case len(c.Tenants) == 0:
		return fmt.Errorf("tenants: there is none")
	}
	for name, t := range c.Tenants {
		if !label.MatchString(name) || !label.MatchString(t.Pool) || t.Claims < 1 {
			return fmt.Errorf("tenants.%s: it needs a pool, and claims of at least 1", name)
		}
	}
	return nil
}
