'use strict';

// The web shop's preview of an invoice. Amounts are whole cents.

/** Returns the tax on net cents at rate hundredths of a percent, as billing.go has it. */
function vat(net, rate) {
  return Math.round((net * rate) / 10_000);
}

/** Returns the total of [net, rate] lines. */
function total(lines) {
  return lines.reduce((sum, [net, rate]) => sum + net + vat(net, rate), 0);
}

module.exports = { vat, total };
