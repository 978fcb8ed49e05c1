// Package billing adds up invoices in whole cents.
package billing

// A Line is one position of an invoice.
type Line struct {
	Text string
	Net  int64 // cents; negative in a credit note
	Rate int64 // VAT in hundredths of a percent: 2100 is 21 %
}

// An Invoice is a list of lines.
type Invoice struct{ Lines []Line }

// VAT returns the tax on net cents, rounded to the nearest cent, half a cent away
// from zero.
func VAT(net, rate int64) int64 {
	return (net*rate + 5_000) / 10_000
}

// Total returns what is to be paid: every line with its VAT.
func (v Invoice) Total() int64 {
	var total int64
	for _, l := range v.Lines {
		total += l.Net + VAT(l.Net, l.Rate)
	}
	return total
}

// CreditNote returns the invoice that cancels v.
func (v Invoice) CreditNote() Invoice {
	var note Invoice
	for _, l := range v.Lines {
		note.Lines = append(note.Lines, Line{Text: "credit: " + l.Text, Net: -l.Net, Rate: l.Rate})
	}
	return note
}
