# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of modules of CPython's suite and prints "ok NAME", "not ok NAME" or "skip NAME" for each."""
import faulthandler
import os
import resource
import sys
import unittest

import test

# The distribution has test.support in another package than the tests.
test.__path__.append(os.path.join(os.getcwd(), "test"))
# test_subprocess and others try all descriptors.
resource.setrlimit(resource.RLIMIT_NOFILE, (512, 512))
faulthandler.dump_traceback_later(400, exit=True)
printed = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)


class Outcomes(unittest.TestResult):
    def startTest(self, test):
        super().startTest(test)
        self.state = "ok"

    def addError(self, test, err):
        super().addError(test, err)
        self.state = "not ok"
        print(test.id() + "\n" + self.errors[-1][1], file=sys.stderr)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.state = "not ok"
        print(test.id() + "\n" + self.failures[-1][1], file=sys.stderr)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err:
            self.state = "not ok"

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.state = "skip"

    def addUnexpectedSuccess(self, test):
        self.state = "not ok"

    def stopTest(self, test):
        print(self.state, test.id(), file=printed)


for name in sys.argv[1:]:
    try:
        suite = unittest.defaultTestLoader.loadTestsFromName(name)
    except unittest.SkipTest:
        print("skip", name, file=printed)
        continue
    suite.run(Outcomes())
