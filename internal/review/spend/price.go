// SPDX-License-Identifier: Apache-2.0

package spend

import (
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/kit/strictjson"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// PricesSchema is the value of the "schema" field of a table of prices.
const PricesSchema = "fumehood.prices/v1"

// Shipped is the table of prices that is part of fumehood. It has the highest price of a model
// that has several, and exact names only.
//
//go:embed prices.json
var Shipped []byte

// maxPrice is the highest price of a million tokens. With it no sum overflows: see maxTokens.
const maxPrice = 10_000 * dollar

// maxTable is the maximum size of a table in bytes.
const maxTable = 1 << 20

// A Price is what one token costs.
type Price struct{ Input, Output USD }

// Prices is a table of prices.
type Prices struct {
	Date   string // of the prices
	Digest string // "sha256:" and the lower-case hex SHA-256 of the file
	models map[string]Price
}

// ReadPrices reads a table like Shipped. The error is a *proposal.StopError.
func ReadPrices(data []byte) (Prices, error) {
	var table struct {
		Schema, Date, Unit string
		Models             map[string]struct{ Input, Output string }
	}
	p := Prices{Digest: fmt.Sprintf("sha256:%x", sha256.Sum256(data)), models: map[string]Price{}}
	if err := strictjson.Decode(data, &table); err != nil || len(data) > maxTable || table.Schema != PricesSchema ||
		len(table.Models) == 0 {
		return p, pricesError(errors.Join(err, errors.New("want a table as prices.json")))
	}
	p.Date = table.Date
	for name, m := range table.Models {
		in, err := ParseUSD(m.Input)
		out, err2 := ParseUSD(m.Output)
		if err == nil && max(in, out) > maxPrice {
			err = errors.New("a price is more than $10,000 for a million tokens")
		}
		if err := errors.Join(err, err2); err != nil {
			return p, pricesError(fmt.Errorf("model %q: %w", name, err))
		}
		p.models[name] = Price{in / million, out / million}
	}
	return p, nil
}

func pricesError(err error) error {
	return &proposal.StopError{Code: "model.prices", Message: "invalid table of prices",
		Hint: "compare it with the table in docs/REVIEW.md", Err: err}
}

// PriceOf returns the price of a model; ok is false for a model that the table lacks.
func (p Prices) PriceOf(model string) (price Price, ok bool) {
	price, ok = p.models[model]
	return price, ok
}

// USD is an amount of money: 10⁻¹² US dollars, so that the price of a token is a whole number.
type USD int64

const (
	million     = 1_000_000
	dollar  USD = million * million
)

var decimal = pattern.New(`^[0-9]{1,6}(\.[0-9]{1,6})?$`)

// ParseUSD reads an amount in dollars: at most six digits before and after the point.
func ParseUSD(s string) (USD, error) {
	if !decimal.MatchString(s) {
		return 0, fmt.Errorf("invalid amount %q: want dollars such as 2 or 0.50", s)
	}
	r, _ := new(big.Rat).SetString(s)
	return USD(new(big.Rat).Mul(r, new(big.Rat).SetInt64(int64(dollar))).Num().Int64()), nil
}

// String returns u in dollars, rounded up to the sixth digit: "$0.012346".
func (u USD) String() string {
	micro := (u + million - 1) / million
	return fmt.Sprintf("$%d.%06d", micro/million, micro%million)
}

// unlimited is a USD that no budget reaches, and how it is written.
const (
	unlimited     USD = math.MaxInt64
	unlimitedText     = "unlimited"
)

// MarshalText writes u exactly, as dollars with twelve digits after the point. A number of JSON
// would not be exact.
func (u USD) MarshalText() ([]byte, error) {
	switch {
	case u == unlimited:
		return []byte(unlimitedText), nil
	case u < 0:
		return nil, errors.New("a negative amount")
	}
	return fmt.Appendf(nil, "%d.%012d", u/dollar, u%dollar), nil
}

var exact = pattern.New(`^[0-9]{1,6}\.[0-9]{12}$`)

// UnmarshalText reads what MarshalText writes.
func (u *USD) UnmarshalText(data []byte) error {
	if string(data) == unlimitedText {
		*u = unlimited
		return nil
	}
	if !exact.Match(data) {
		return errors.New("not an amount in dollars")
	}
	n, err := strconv.ParseInt(strings.Replace(string(data), ".", "", 1), 10, 64)
	*u = USD(n)
	return err
}

// An Amount is what was spent, or may be.
type Amount struct {
	Tokens int64 `json:"tokens"` // of input and output
	USD    USD   `json:"usd"`
}
