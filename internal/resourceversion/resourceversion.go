// Package resourceversion compares resourceVersions. apimachinery's package of the same name exists from version 0.35 on.
package resourceversion

import (
	"fmt"
	"strings"
)

// Compare returns -1 if a is older than b, 0 if they are equal and 1 if a is newer. Both are versions of the same resource.
// Compare fails unless both are positive decimal numbers without leading zeros. See https://kep.k8s.io/5504.
func Compare(a, b string) (int, error) {
	for _, version := range [...]string{a, b} {
		if !isComparable(version) {
			return 0, fmt.Errorf("resource version is not well formed: %s", version)
		}
	}
	if len(a) != len(b) {
		if len(a) < len(b) {
			return -1, nil
		}
		return 1, nil
	}
	return strings.Compare(a, b), nil
}

// IsNewer reports whether a > b. It is false if they are not comparable; "" never is.
func IsNewer(a, b string) bool {
	order, err := Compare(a, b)
	return err == nil && order > 0
}

func isComparable(version string) bool {
	if version == "" || version[0] == '0' {
		return false
	}
	for i := range len(version) {
		if version[i] < '0' || version[i] > '9' {
			return false
		}
	}
	return true
}
