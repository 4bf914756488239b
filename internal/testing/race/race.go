// Package race reports whether a test runs with the race detector.
package race

import "testing"

// Skip skips a test if the race detector is on, which takes five to ten times as long for large input and for many cases. make long
// runs the tests of these packages without the race detector.
func Skip(t testing.TB) {
	t.Helper()
	if Enabled {
		t.Skip("large input or many cases: make long runs this test without the race detector")
	}
}
