import io
import unittest

from billing import euros, export

MARCH = [("consulting", 10000, 2100), ("postage, insured", 1050, 2100)]


class ExportTest(unittest.TestCase):
    def test_total(self):
        self.assertEqual(export(MARCH, io.StringIO()), 13371)

    def test_csv_quotes_commas(self):
        out = io.StringIO()
        export(MARCH, out)
        self.assertEqual(
            out.getvalue(),
            'text,net,vat\nconsulting,100.00,21.00\n"postage, insured",10.50,2.21\n',
        )

    def test_euros(self):
        for cents, want in [(0, "0.00"), (5, "0.05"), (-5, "-0.05"), (-1050, "-10.50")]:
            with self.subTest(cents=cents):
                self.assertEqual(euros(cents), want)
