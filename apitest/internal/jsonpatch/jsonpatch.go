// Package jsonpatch applies JSON patches with the API server's limit of copied bytes.
//
// The library has this limit too, but as a variable of the whole process, which a test's server must not set. So a patch with
// copies is replayed first on a document of its own, which computes the size of each copy. The library applies the patch then, and
// it alone decides about errors: the replay stops at an operation that does not apply.
package jsonpatch

import (
	"fmt"
	"slices"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

// MaxCopied is the limit of the bytes that the copies of one patch add. It is kube-apiserver's --json-patch-max-copy-bytes.
const MaxCopied = 3 << 20

// Apply returns the patched document. Errors are the library's.
func Apply(document []byte, patch jsonpatch.Patch) ([]byte, error) {
	return apply(document, patch, MaxCopied)
}

func apply(document []byte, patch jsonpatch.Patch, limit int64) ([]byte, error) {
	if !slices.ContainsFunc(patch, func(op jsonpatch.Operation) bool { return op.Kind() == "copy" }) {
		return patch.Apply(document)
	}
	applied, tooLarge := replayed(document, patch, limit)
	if tooLarge != nil {
		if _, err := patch[:applied].Apply(document); err != nil { // such as a failed test
			return nil, err
		}
		return nil, tooLarge
	}
	if applied == len(patch) {
		return patch.Apply(document)
	}
	if _, err := patch[:applied+1].Apply(document); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("apitest: the size of operation %d of the JSON patch is unknown", applied)
}

// replayed returns the number of operations before the first that does not apply, and the error if that one copies too much.
func replayed(document []byte, patch jsonpatch.Patch, limit int64) (applied int, tooLarge error) {
	root := &node{raw: document}
	if !root.open() {
		return 0, nil
	}
	var copied int64
	for i, op := range patch {
		size, ok := root.apply(op)
		if copied += size; copied > limit {
			return i, jsonpatch.NewAccumulatedCopySizeError(limit, copied)
		}
		if !ok {
			return i, nil
		}
	}
	return len(patch), nil
}
