'use strict';

const assert = require('node:assert');
const { test } = require('node:test');
const { vat, total } = require('./preview.js');

test('half a cent is rounded up', () => {
  assert.strictEqual(vat(1050, 2100), 221);
  assert.strictEqual(vat(1049, 2100), 220);
});

test('the preview shows the total that billing.go has for March', () => {
  assert.strictEqual(total([[10000, 2100], [1050, 2100], [1999, 900]]), 15550);
});
