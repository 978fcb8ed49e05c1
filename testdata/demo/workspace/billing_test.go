package billing

import "testing"

func TestVAT(t *testing.T) {
	cases := []struct{ net, rate, want int64 }{
		{10000, 2100, 2100},
		{1049, 2100, 220}, // 220.29
		{1050, 2100, 221}, // 220.50
		{0, 2100, 0},
		{999, 0, 0},
	}
	for _, c := range cases {
		if got := VAT(c.net, c.rate); got != c.want {
			t.Errorf("VAT(%d, %d) = %d, want %d", c.net, c.rate, got, c.want)
		}
	}
}

var march = Invoice{Lines: []Line{
	{"consulting", 10000, 2100},
	{"postage", 1050, 2100},
	{"book", 1999, 900},
}}

func TestTotal(t *testing.T) {
	if got := march.Total(); got != 15550 {
		t.Errorf("March is %d cents, want 15550", got)
	}
}

func TestCreditNoteCancelsInvoice(t *testing.T) {
	invoice, note := march.Total(), march.CreditNote().Total()
	if left := invoice + note; left != 0 {
		t.Errorf("invoice %d and credit note %d leave %d cents: VAT(-1050, 2100) = %d, want -221",
			invoice, note, left, VAT(-1050, 2100))
	}
}
